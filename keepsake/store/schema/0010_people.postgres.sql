-- Whether anyone has a credential is asked before it is known of which org.
SELECT keepsake_shared('users');
