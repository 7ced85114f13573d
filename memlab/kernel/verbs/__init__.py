"""What a lab does every day: remember, link, recall, take feedback, correct, change policies."""
