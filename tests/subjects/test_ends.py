"""When what is superseded ends, and who can end it."""


def test_what_another_memory_supersedes_held_until_that_one_began(lab):
    lab.remember("the office is in Rome", valid_from="2025-01-01")
    lab.remember("the office is in Oslo", valid_from="2025-06-01", linking="off")
    lab.graph.link(2, 1, "supersedes")
    ends = lab.memories.row(0, named=True)["valid_until"]
    assert ends == lab.memories.row(1, named=True)["valid_from"]


def test_what_an_assistant_says_of_a_user_ends_nothing_however_little_is_asked_of_facts(lab):
    lab.policies.use("(pack bold) (setting succession-confidence 0)")

    def told(role, content, at):
        lab.agents.commit(lab.agents.extract([{"role": role, "content": content, "at": at}]))
        return dict(lab.facts.frame(predicate="lives-in").select("object", "status").iter_rows())

    assert told("user", "I live in Rome.", "2025-01-01") == {"Rome": "active"}
    by_others = told("assistant", "The user lives in Bonn.", "2025-02-01")
    assert by_others == {"Rome": "active", "Bonn": "staged"}
    by_the_user = told("user", "I live in Oslo.", "2025-03-01")
    assert by_the_user == {"Rome": "superseded", "Bonn": "superseded", "Oslo": "active"}
