/* Leases, fences, early starts and hand-backs: one job, two workers, a recoverer and a clock.

   Time is relative: a renewed lease has LEASE ticks left, and the server ends the transaction of
   an open claim after IDLE ticks. The clock ticks when it likes, so a worker may be paused at any
   point for any time; it may also be killed. Whoever comes back does so under a new row.

   Always checked, by assertions:
     - a report that counts comes from the newest claim
     - the job succeeds at most once
     - a job never becomes running under a row that is gone
   Checked with LIVE: once nobody is killed, paused or blocked any more, the job ends.

   Each of these breaks it and is caught; see tools/check_models.py:
     FENCE_FROM_ATTEMPTS  the fence is the count of attempts, which a hand-back gives back
     NO_FENCE             a report names no claim
     COMMIT_AFTER_LEASE   an open claim has no timeout, so it may commit after the lease
     CLAIM_AT_THE_END     a claim is opened that may outlive the lease
     RECOVER_EARLY        recovery takes the jobs of a row that is still valid, under LIVE for ever
     NO_RECOVERY          nobody takes back the jobs of a row that has run out
     NO_ADOPTION          with COMMIT_AFTER_LEASE: recovery ignores jobs whose row is gone already
*/

#define LEASE 3
#define IDLE 1
#define NOBODY 2
#define GONE 3

/* They bound the search, not the system. */
#define MOST_CLAIMS 3
#define MOST_DEATHS 2

mtype = { queued, running, succeeded };

/* The database. */
mtype state = queued;
byte owner = NOBODY;
byte fence = 0;
byte attempts = 0;
byte locked_by = NOBODY;
byte idle_left = 0;
bool row[2];
byte lease_left[2];

/* What nobody knows: which claim is the newest, and what has happened. */
byte claims = 0;
byte successes = 0;
byte deaths = 0;
bool is_calm = false;

/* What a worker knows, lost with it. */
bool lives[2] = true;
bool is_open[2];
bool holds[2];
bool has_run[2];
byte my_fence[2];
byte my_claim[2];

inline forget(w) {
    is_open[w] = false; holds[w] = false; has_run[w] = false; my_fence[w] = 0; my_claim[w] = 0
}

inline take_fence(w) {
#ifdef LIVE
    /* Any number that nobody remembers will do, and keeps the states finite. */
    if
    :: fence != 1 && my_fence[1 - w] != 1 -> my_fence[w] = 1
    :: else ->
         if
         :: fence != 2 && my_fence[1 - w] != 2 -> my_fence[w] = 2
         :: else -> my_fence[w] = 3
         fi
    fi
#else
    claims++; attempts++;
    my_claim[w] = claims;
#ifdef FENCE_FROM_ATTEMPTS
    my_fence[w] = attempts
#else
    my_fence[w] = claims
#endif
#endif
}

inline give_back_attempt() {
#ifndef LIVE
    attempts--
#else
    skip
#endif
}

inline requeue(w) {
    if
    :: state == running && owner == w -> state = queued; owner = NOBODY
    :: else -> skip
    fi
}

inline accept(w) {
#ifndef LIVE
    assert(my_claim[w] == claims);
    successes++;
    assert(successes == 1);
#endif
    state = succeeded; owner = NOBODY
}

#ifdef LIVE
#define may_claim true
#else
#define may_claim (claims < MOST_CLAIMS)
#endif

#ifdef CLAIM_AT_THE_END
#define lease_suffices(w) (lease_left[w] > 0)
#else
#define lease_suffices(w) (lease_left[w] > IDLE)
#endif

/* The thread that registers and renews. What ran out stays lost. */
proctype Lease(byte w) {
    do
    :: atomic { lives[w] && !row[w] && !is_open[w] ->
         if
         :: owner == w -> owner = GONE      /* It is under a row that nobody has any more. */
         :: else -> skip
         fi;
         forget(w); row[w] = true; lease_left[w] = LEASE }
    :: atomic { lives[w] && row[w] && lease_left[w] > 0 && lease_left[w] < LEASE ->
         lease_left[w] = LEASE }
    /* It hands back what has not started while the loop is blocked and does not learn of it. */
    :: atomic { (lives[w] && !is_calm && may_claim && holds[w] && !has_run[w] && !is_open[w] &&
                 state == running && fence == my_fence[w]) ->
         state = queued; owner = NOBODY; give_back_attempt() }
    :: state == succeeded -> break
    od
}

/* The loop: claim, run, report. What an idle worker claims begins before its claim is committed. */
proctype Loop(byte w) {
    do
    :: atomic { (lives[w] && row[w] && !holds[w] && state == queued && locked_by == NOBODY &&
                 lease_suffices(w) && may_claim) ->
         locked_by = w; idle_left = IDLE; is_open[w] = true; holds[w] = true; take_fence(w) }
    :: atomic { lives[w] && is_open[w] && locked_by == w ->
#ifndef LIVE
         assert(row[w]);
#endif
         state = running; owner = w; fence = my_fence[w];
         locked_by = NOBODY; is_open[w] = false }
    :: atomic { lives[w] && is_open[w] && locked_by != w -> forget(w) }
    :: atomic { lives[w] && holds[w] && !has_run[w] -> has_run[w] = true }
    :: atomic { lives[w] && has_run[w] && !is_open[w] ->
         if
#ifdef NO_FENCE
         :: state == running -> accept(w)
#else
         :: state == running && fence == my_fence[w] -> accept(w)
#endif
         :: else -> skip
         fi;
         forget(w) }
    :: state == succeeded -> break
    od
}

/* kill -9: the server ends what was open. Another process starts when the row has run out. */
proctype Fate(byte w) {
    do
    :: atomic { lives[w] && !is_calm && deaths < MOST_DEATHS ->
         deaths++; lives[w] = false;
         if
         :: locked_by == w -> locked_by = NOBODY; idle_left = 0; give_back_attempt()
         :: else -> skip
         fi;
         forget(w) }
    :: atomic { !lives[w] && !row[w] -> lives[w] = true }
    :: state == succeeded -> break
    od
}

proctype Recoverer() {
    do
#ifndef NO_RECOVERY
#ifdef RECOVER_EARLY
    :: atomic { row[0] -> row[0] = false; requeue(0) }
    :: atomic { row[1] -> row[1] = false; requeue(1) }
#else
    :: atomic { row[0] && lease_left[0] == 0 -> row[0] = false; requeue(0) }
    :: atomic { row[1] && lease_left[1] == 0 -> row[1] = false; requeue(1) }
#endif
#ifndef NO_ADOPTION
    :: atomic { state == running && (owner == GONE || (owner < NOBODY && !row[owner])) ->
         state = queued; owner = NOBODY }
#endif
#endif
    :: state == succeeded -> break
    od
}

/* Calm: whoever lives renews and commits what it has open before the next tick. */
#define is_late(w) (lives[w] && row[w] && lease_left[w] > 0 && lease_left[w] < LEASE)
#define may_tick (!is_calm || (!is_late(0) && !is_late(1) && locked_by == NOBODY))

proctype Clock() {
    do
    :: atomic { state != succeeded && may_tick ->
         if
         :: lease_left[0] > 0 -> lease_left[0]--
         :: else -> skip
         fi;
         if
         :: lease_left[1] > 0 -> lease_left[1]--
         :: else -> skip
         fi;
#ifndef COMMIT_AFTER_LEASE
         if
         :: locked_by != NOBODY && idle_left == 0 -> give_back_attempt(); locked_by = NOBODY
         :: locked_by != NOBODY && idle_left > 0 -> idle_left--
         :: else -> skip
         fi
#endif
       }
    :: state == succeeded -> break
    od
}

proctype Calm() {
    is_calm = true
}

init {
    atomic {
        run Lease(0); run Loop(0); run Fate(0);
        run Lease(1); run Loop(1); run Fate(1);
        run Recoverer(); run Clock(); run Calm()
    }
}

#ifdef LIVE
ltl ends { <> (state == succeeded) }
#endif
