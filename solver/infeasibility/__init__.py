"""Why a problem has no plan: the limits that cannot hold together, and single changes after which there is one."""
