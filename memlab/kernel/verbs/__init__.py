"""The verbs of daily use: remember, link, recall, feedback, correct, change policies."""
