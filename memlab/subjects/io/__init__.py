"""The subject io: loading, exports, mirrors, backups, checks, and joins of labs."""
