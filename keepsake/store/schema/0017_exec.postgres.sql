-- What is to be run is looked for whichever org it belongs to.
SELECT keepsake_shared('invocations');
