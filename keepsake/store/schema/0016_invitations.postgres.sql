-- A link says whose it is only once it is found, and whether there is one is asked before anyone has signed in.
SELECT keepsake_shared('invitations');
