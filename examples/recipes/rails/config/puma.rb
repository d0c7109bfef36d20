# Before Rails 7.1, a thread that waits for SQLite blocks all threads of its process, including the one that it waits for.
threads 1, 1
