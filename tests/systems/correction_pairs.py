"""Forty triples for the default pack: a statement, its correction, and a query about it.

``READ`` were known when the constants of ``corrects`` were chosen. ``UNREAD`` were written afterwards, but have been run
several times while rules were written. Neither set is held out any more.
"""

READ = (
    (
        "The user indents with tabs",
        "The user has moved to four spaces",
        "How does the user indent?",
    ),
    ("I take the tram to work", "I cycle to work now", "How do I get to work?"),
    (
        "The server listens on port 8080",
        "It is port 9090, not 8080",
        "On which port does the server listen?",
    ),
    ("Our standup is at nine", "Standup begins at half past nine from now on", "When is standup?"),
    (
        "My favourite colour is blue",
        "I like green better these days",
        "What is my favourite colour?",
    ),
    ("The user lives in Rome", "The user has moved to Milan", "Where does the user live?"),
    (
        "We deploy on Fridays",
        "No deployments on Fridays any more, we ship on Tuesdays",
        "On which day do we deploy?",
    ),
    ("The user eats meat", "The user became a vegetarian", "Does the user eat meat?"),
    (
        "Invoices go to accounting@shop.test",
        "Invoices are sent to billing@shop.test instead",
        "Where are invoices sent?",
    ),
    (
        "The user drives a Volvo",
        "The Volvo was sold, the user drives a Fiat",
        "What car does the user drive?",
    ),
    ("My dentist is Dr Hansen", "Dr Hansen retired, I see Dr Petersen", "Who is my dentist?"),
    (
        "The cache expires after ten minutes",
        "The cache expires after an hour",
        "When does the cache expire?",
    ),
    ("The user is a nurse", "The user works as a teacher now", "What is the user's job?"),
    (
        "I am learning Spanish",
        "I gave up Spanish and started Italian",
        "Which language am I learning?",
    ),
    (
        "The library is pinned to version 2",
        "Version 3 of the library is what we pin",
        "Which version of the library is pinned?",
    ),
    (
        "The user prefers dark mode",
        "Light mode is what the user wants",
        "Which mode does the user prefer?",
    ),
    ("The user is engaged to Karl", "The wedding with Karl is off", "Is the user engaged?"),
    ("We store logs for thirty days", "Logs are kept for ninety days", "How long do we keep logs?"),
    ("The user runs on Mondays", "Running day is Thursday", "When does the user run?"),
    ("Tests run with unittest", "We switched to pytest", "What do the tests run with?"),
)
UNREAD = (
    (
        "The user takes the bus to school",
        "The user goes to school by bike since March",
        "How does the user get to school?",
    ),
    (
        "My landlord is Mr Novak",
        "The flat was sold, my landlord is a Mrs Silva",
        "Who is my landlord?",
    ),
    (
        "The meeting room is on the second floor",
        "The meeting room has moved to the ground floor",
        "On which floor is the meeting room?",
    ),
    ("We pay for the small plan", "We upgraded to the large plan", "Which plan do we pay for?"),
    (
        "The user drinks oat milk",
        "The user can no longer stand oat milk and takes almond milk",
        "Which milk does the user drink?",
    ),
    ("I play tennis on Saturdays", "Tennis is on Sundays this season", "When do I play tennis?"),
    (
        "The main branch is called master",
        "It is called main, not master",
        "What is the main branch called?",
    ),
    (
        "The user's phone number ends in 44",
        "The new phone number of the user ends in 71",
        "What does the user's phone number end in?",
    ),
    (
        "Our supplier of paper is Arco",
        "We order paper from Felix now",
        "Who is our supplier of paper?",
    ),
    (
        "The user is afraid of dogs",
        "The user got over it and has a puppy",
        "Is the user afraid of dogs?",
    ),
    (
        "Passwords must have eight characters",
        "Passwords need at least twelve characters",
        "How many characters must a password have?",
    ),
    (
        "My sister studies physics",
        "She dropped physics and studies law",
        "What does my sister study?",
    ),
    (
        "The user wakes up at six",
        "The user sleeps until eight these days",
        "When does the user wake up?",
    ),
    (
        "The report is due on Monday",
        "The report is due on Wednesday instead",
        "When is the report due?",
    ),
    (
        "We host the site on Heroku",
        "The site was migrated to Hetzner",
        "Where do we host the site?",
    ),
    ("I like my steak rare", "I take my steak well done", "How do I like my steak?"),
    (
        "The user has two cats",
        "One of the cats died, the user has one",
        "How many cats does the user have?",
    ),
    (
        "The backup goes to tape",
        "Backups are written to cloud storage",
        "Where does the backup go?",
    ),
    (
        "The user works for Siemens",
        "The user left Siemens for Bosch",
        "Who does the user work for?",
    ),
    (
        "My daughter plays the flute",
        "My daughter changed to the drums",
        "Which instrument does my daughter play?",
    ),
)
