"""Memories for widgets: markup, control characters and right-to-left are among them."""

TEXTS = [
    ("The user prefers tabs over spaces", "preference"),
    ("Deploys go out on Tuesdays", "convention"),
    ("The user wrote: spaces <b>never</b> <img src=x onerror=alert(1)>", "fact"),
    ("مرحبا tabs \u202egnihton\u202c \x1b[2J", "fact"),
    ("Tabs are eight columns wide in this project", "fact"),
    ("Releases need a changelog line", "convention"),
]
