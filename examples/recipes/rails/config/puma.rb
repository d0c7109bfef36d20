# A thread that waits for SQLite stops the others of its process, also the one that it waits for, before Rails 7.1.
threads 1, 1
