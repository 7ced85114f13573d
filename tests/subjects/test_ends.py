"""When what is superseded ends, and who can end it."""

import pytest


def test_a_superseded_fact_was_valid_until_its_successor_began(lab):
    lab.remember("the office is in Rome", valid_from="2025-01-01")
    lab.remember("the office is in Oslo", valid_from="2025-06-01", linking="off")
    lab.graph.link(2, 1, "supersedes")
    ends = lab.memories.row(0, named=True)["valid_until"]
    assert ends == lab.memories.row(1, named=True)["valid_from"]


@pytest.mark.long
def test_an_assistants_statement_about_a_user_ends_no_fact(lab):
    lab.policies.use("(pack bold) (setting succession-confidence 0)")

    def state_and_read(role, content, at):
        lab.agents.commit(lab.agents.extract([{"role": role, "content": content, "at": at}]))
        return dict(lab.facts.frame(predicate="lives-in").select("object", "status").iter_rows())

    assert state_and_read("user", "I live in Rome.", "2025-01-01") == {"Rome": "active"}
    by_others = state_and_read("assistant", "The user lives in Bonn.", "2025-02-01")
    assert by_others == {"Rome": "active", "Bonn": "staged"}
    by_the_user = state_and_read("user", "I live in Oslo.", "2025-03-01")
    assert by_the_user == {"Rome": "superseded", "Bonn": "superseded", "Oslo": "active"}
