"""What happens to memories between recalls: decided by policies, returned as changes that an event carries."""
