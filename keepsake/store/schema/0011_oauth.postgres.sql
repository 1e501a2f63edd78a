-- A token or a session says whose it is only once it is found.
SELECT keepsake_shared('oauth_tokens'), keepsake_shared('oauth_grants'), keepsake_shared('oauth_clients');
SELECT keepsake_shared('web_sessions');
