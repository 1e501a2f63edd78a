-- Due checks are claimed, and a heartbeat's token is looked up, whichever org they belong to.
SELECT keepsake_shared('checks');
