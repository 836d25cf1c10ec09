/* Slots of one schedule: two schedulers that read and fire, and a person who edits.

   The schedule is due at every instant of its rhythm: `every` 1 or 2. A scheduler reads the clock
   row (next slot, revision), takes its time, and fires in one transaction: the slot is inserted,
   the job with it, and the clock advances. An edit changes the rhythm or disables the schedule,
   and advances the revision as every fire does.

   Always checked: a slot has at most one job; nothing fires while it is disabled; what
   fires is a slot of the rhythm as it is now; the clock never goes back.
   Checked with LIVE: an enabled schedule that nobody edits any more reaches the last slot.

   Each of these breaks it and is caught; see tools/check_models.py:
     NO_COMPARE         the transaction does not compare the revision, nor `enabled`
     NO_KEY             with NO_COMPARE: the slot has no primary key either
     COMPARE_FIRST      the revision is compared before the transaction instead of in it
     NO_READ_AGAIN      who finds another revision does not read again
*/

#define LAST 6

byte every = 1;
bool is_enabled = true;
byte next_slot = 1;
byte revision = 0;
byte jobs[LAST + 3];
byte edits = 0;
#define MOST_EDITS 2

inline fire(slot, step) {
#ifdef NO_KEY
    jobs[slot]++;
#else
    if
    :: jobs[slot] == 0 -> jobs[slot]++
    :: else -> skip
    fi;
#endif
    assert(jobs[slot] == 1);
    assert(is_enabled);
    assert(slot % every == 0);
    assert(slot + step > next_slot);
    next_slot = slot + step;
    revision++
}

proctype Scheduler() {
    byte slot, step, seen;
    bool matches;
    do
    :: atomic { is_enabled && next_slot <= LAST ->
                slot = next_slot; step = every; seen = revision };
again:
#ifdef COMPARE_FIRST
         matches = (seen == revision && is_enabled);
         atomic {
             if
             :: matches -> fire(slot, step)
             :: else -> skip
             fi
         }
#else
         atomic {
             if
#ifdef NO_COMPARE
             :: true -> fire(slot, step)
#else
             :: seen == revision && is_enabled -> fire(slot, step)
             :: else ->
#ifdef NO_READ_AGAIN
                  goto again
#else
                  skip
#endif
#endif
             fi
         }
#endif
    :: next_slot > LAST -> break
    od
}

proctype Person() {
    do
    :: edits < MOST_EDITS ->
         atomic {
             edits++; revision++;
             if
             :: every = 3 - every; next_slot = next_slot + (next_slot % every)
             :: is_enabled = false
             fi
         };
         atomic { is_enabled = true; revision++ }
    :: break
    od
}

init {
    atomic { run Scheduler(); run Scheduler(); run Person() }
}

#ifdef LIVE
ltl arrives { <> (next_slot > LAST) }
#endif
