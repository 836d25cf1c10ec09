-- A job may wait for its turn: an earlier run of its schedule is still live.

alter type mainspring.waits_for add value 'turn';
