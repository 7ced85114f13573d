"""Fifteen ordinary memories and fifteen ordinary questions for each of the five designs.

Each memory has one question. The memories of a story are about the same few things, so every question has neighbours
that do not answer it. The kind is one that the design is for; a fact of the fact graph is subject, predicate, value.
"""

CASCADE = (
    (
        "fact",
        "The login service keeps sessions in Redis for thirty minutes",
        "Where are login sessions kept?",
    ),
    (
        "fact",
        "The billing service stores invoices in PostgreSQL",
        "Which database holds the invoices?",
    ),
    (
        "procedure",
        "To release, tag the commit and let CI build the wheel",
        "How do we make a release?",
    ),
    (
        "procedure",
        "To reset the test database, run make reset-db",
        "How can I reset the database for the tests?",
    ),
    (
        "preference",
        "The user prefers pytest over unittest",
        "Which test framework does the user prefer?",
    ),
    (
        "preference",
        "The user wants commit messages in the imperative",
        "How should commit messages be written?",
    ),
    ("correction", "The staging server is on port 8443, not 443", "What port does staging use?"),
    (
        "correction",
        "Timeouts are given in milliseconds, not in seconds",
        "What unit do timeouts have?",
    ),
    ("negative", "Never push directly to the main branch", "May I push to main?"),
    ("negative", "Do not log email addresses of customers", "Can the log contain customer emails?"),
    ("fact", "The parser is generated from grammar.lark", "What is the parser generated from?"),
    ("fact", "Images are resized by a worker called thumbor", "What resizes the images?"),
    ("fact", "The nightly backup runs at three in the morning", "When does the backup run?"),
    (
        "procedure",
        "Rotate the API keys with the script rotate_keys.sh",
        "How are API keys rotated?",
    ),
    (
        "preference",
        "The user likes short functions with type hints",
        "What kind of functions does the user like?",
    ),
)
COMPANION = (
    (
        "personal",
        "The user is called Miriam and lives in Ghent",
        "In which city does the user live?",
    ),
    ("personal", "The user works as a physiotherapist", "What is the user's job?"),
    (
        "personal",
        "The user's brother Jonas studies law in Leuven",
        "What does the user's brother study?",
    ),
    ("preference", "The user drinks tea with milk and no sugar", "How does the user take her tea?"),
    ("preference", "The user loves detective novels", "Which books does the user love?"),
    ("preference", "The user dislikes crowded beaches", "What does the user dislike?"),
    (
        "goal",
        "The user wants to run a marathon next spring",
        "What race does the user want to run?",
    ),
    ("goal", "The user is saving money for a camper van", "What is the user saving for?"),
    ("trait", "The user is shy when she meets new people", "Is the user shy with strangers?"),
    (
        "observation",
        "The user cooks Indian curry on Fridays",
        "What does the user cook on Fridays?",
    ),
    ("observation", "The user walks the dog before breakfast", "When does the user walk the dog?"),
    (
        "event",
        "The user broke her wrist while skiing in February",
        "How did the user break her wrist?",
    ),
    ("event", "The user's laptop was stolen on the train", "What was stolen from the user?"),
    (
        "feeling",
        "The user was proud of her daughter's first concert",
        "What was the user proud of?",
    ),
    (
        "learning",
        "The user sleeps badly after coffee in the evening",
        "Why does the user sleep badly?",
    ),
)
WORKBENCH = (
    ("convention", "Components are named in PascalCase", "How are components named?"),
    (
        "convention",
        "Every endpoint needs an integration test",
        "What kind of test does an endpoint need?",
    ),
    (
        "decision",
        "We chose SQLite over LevelDB because of transactions",
        "Why did we choose SQLite?",
    ),
    (
        "decision",
        "Feature branches are squashed before merging",
        "Are branches squashed before the merge?",
    ),
    (
        "gotcha",
        "The cache must be cleared after changing the schema",
        "What must happen after a schema change?",
    ),
    ("gotcha", "Dates from the CRM arrive without a time zone", "Do CRM dates have a time zone?"),
    (
        "error-pattern",
        "Error E42 means that the license file is missing",
        "What does error E42 mean?",
    ),
    (
        "error-pattern",
        "The build fails with out of memory below four gigabytes",
        "Why does the build run out of memory?",
    ),
    (
        "dependency-relation",
        "The report module depends on the currency library",
        "What does the report module depend on?",
    ),
    (
        "environment-quirk",
        "On Windows the watcher needs polling",
        "What does the watcher need on Windows?",
    ),
    (
        "human-feedback",
        "The reviewer asked for smaller pull requests",
        "What did the reviewer ask for?",
    ),
    (
        "preference",
        "The user wants tables in Markdown, not in HTML",
        "In which format does the user want tables?",
    ),
    (
        "codebase-discovery",
        "Permissions are checked in middleware/auth.ts",
        "Where are permissions checked?",
    ),
    (
        "task-outcome",
        "Moving to Vite cut the build to nine seconds",
        "How fast is the build since Vite?",
    ),
    (
        "session-insight",
        "The flaky upload test waits for a fixed port",
        "Why is the upload test flaky?",
    ),
)
ASSOCIATIVE = (
    ("fact", "Bees dance to show where flowers are", "Why do bees dance?"),
    ("fact", "The greenhouse is heated with a wood stove", "How is the greenhouse heated?"),
    ("fact", "Tomatoes are planted out after the last frost", "When are tomatoes planted out?"),
    ("event", "The apple tree lost a branch in the storm", "What happened to the apple tree?"),
    ("event", "Ruth sold twelve jars of honey at the market", "How much honey did Ruth sell?"),
    ("observation", "Slugs eat the lettuce when it rains", "What do slugs eat?"),
    ("observation", "The old well dries up in August", "In which month is the well dry?"),
    ("procedure", "Compost needs to be turned every two weeks", "How often is the compost turned?"),
    ("procedure", "Sharpen the scythe with a wet stone", "How do I sharpen the scythe?"),
    ("fact", "The neighbour keeps goats behind the barn", "Which animals does the neighbour keep?"),
    ("fact", "The seed order goes to a nursery in Utrecht", "Where are the seeds ordered?"),
    ("preference", "Ruth prefers garlic from her own bed", "Which garlic does Ruth prefer?"),
    ("event", "The fence was painted green last spring", "What colour is the fence?"),
    ("fact", "The tractor needs diesel without additives", "What fuel does the tractor need?"),
    ("observation", "The hens lay fewer eggs in winter", "When do the hens lay fewer eggs?"),
)
FACTGRAPH = (
    (("Clara", "lives-in", "Porto"), "Where does Clara live?"),
    (("Clara", "works-at", "the city library"), "Where does Clara work?"),
    (("Clara", "plays", "the viola"), "Which instrument does Clara play?"),
    (("Henrik", "lives-in", "Malmo"), "In which city does Henrik live?"),
    (("Henrik", "allergic-to", "shellfish"), "What is Henrik allergic to?"),
    (("Henrik", "drives", "an electric van"), "What does Henrik drive?"),
    (("Aurora", "uses", "TypeScript"), "Which language does Aurora use?"),
    (("Aurora", "deployed-on", "Fly"), "Where is Aurora deployed?"),
    (("Aurora", "status", "in beta"), "What is the status of Aurora?"),
    (("Petra", "manages", "the design team"), "Which team does Petra manage?"),
    (("Petra", "speaks", "Czech and German"), "Which languages does Petra speak?"),
    (("Petra", "birthday", "the fourth of June"), "When is Petra's birthday?"),
    (("Omar", "likes", "black olives"), "What food does Omar like?"),
    (("Omar", "married-to", "Leila"), "Who is Omar married to?"),
    (("Omar", "studied", "marine biology"), "What did Omar study?"),
)
