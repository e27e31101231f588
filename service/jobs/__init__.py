"""Jobs that outlive the process that took them: the store, the queue, and the workers that empty it."""
