------------------------------ MODULE sparkonce ------------------------------
(* The protocol of docs/protocol.md: drivers, tasks and operators around one store, and their troubles.             *)
EXTENDS commit
CONSTANTS Drivers,                                        \* places, in each of which one process lives at a time
          Parts, Sizes, LastEpoch, MaxRuns, MaxAttempts,  \* partitions; how many chunks an attempt may have
          Most,                                           \* how often each kind of trouble may occur
          Loss  \* what the store may lose: "suffix", "ledger", "log", "place"; "dirty": it shows what it will lose;
                \* "lag": it loses nothing, but some reads show an older ledger;
                \* "primary": two primaries accept writes, and one of them will end with all that it alone has
Epochs == 0..LastEpoch   Calm == n.calm = 1
Turns(new) ==  \* the world's next state, if troubles allow it
  (new.n = n \/ \A x \in DOMAIN Most : new.n[x] <= Most[x] /\ (Calm => new.n[x] = n[x])) /\ w' = new
Set(d, v) == drv' = [drv EXCEPT ![d] = v]   Only(d, v) == Set(d, v) /\ UNCHANGED w
World(new) == Turns(new) /\ UNCHANGED drv
Init ==
  /\ drv = [d \in Drivers |-> Off]
  /\ w = [att |-> <<>>, bad |-> {}, sent |-> {}, told |-> {}, past |-> <<>>,
          ckpt |-> [q \in Queries |-> [done |-> -1, plan |-> [e \in Epochs |-> 0]]],
          n |-> [x \in {"stamp", "runs"} \cup DOMAIN Most |-> 0],
          S |-> [led |-> [x \in Names |-> Nothing], claim |-> Free, log |-> {}, fence |-> 0,
                 hist |-> <<>>, known |-> Unknown, at |-> [l \in Places |-> [fence |-> 0, ks |-> {}, rows |-> <<>>]]]]
\* ---- a commit, request by request; each request and reply may be lost, arrive late, or arrive twice
Views(x) == {S} \cup {[S EXCEPT !.led[x] = g.new] : g \in {m \in Range(w.past) : Loss = "dirty" /\ m.name = x}}
               \cup {[S EXCEPT !.led[x] = old.led[x]] : old \in {o \in Range(w.past) : Loss = "lag"}}
Fetched(v) ==
  LET m == v.m  is == S.led[m.name].tok = m.new.tok  ended == S.led[m.name].app >= Len(m.new.man) IN
  IF (~is /\ v.ack # m.new.tok) \/ (Profile = "lanes" /\ (~is \/ ended)) THEN [v EXCEPT !.pc = "ask"]
  ELSE IF m.new.man[v.k] \in S.log THEN [v EXCEPT !.pc = "row", !.known = IF v.k = 1 THEN S.known ELSE @]
  ELSE IF ~is \/ ended THEN [v EXCEPT !.pc = "ask"] ELSE Fail(v, "Lost")
Looked(v) ==
  IF IsWhole(v.m.new.man) THEN [v EXCEPT !.pc = "ask"] ELSE IF IsThere(v.m) THEN Fail(v, "Missing")
  ELSE IF S.led[v.m.name].stamp = 0 THEN After(v, v.m, Nothing) ELSE Again(v, "read")
Learned(v) ==  \* lanes may have lost what they had
  IF \E l \in Places : S.at[l].fence < v.m.new.fence \/ S.at[l].ks # 1..Len(v.m.new.man) THEN First(v)
  ELSE [v EXCEPT !.pc = "mark", !.known = [l \in Places |-> <<S.at[l].fence, S.at[l].ks>>]]
HasPath(v, r) == Kind(v.q) # "next" \/ (r.at /\ Decided(r, v.q, 0))
Looks(d) ==
  LET v == drv[d]  x == Name(v.q)  open == {y \in Names \ {x} : S.led[y].open} IN
  \/ v.pc = "neighbours" /\ open = {} /\ Only(d, Again(v, "read"))  \* a batch first finishes open epochs of others
  \/ v.pc = "neighbours" /\ \E y \in open : Only(d, IF Overtaken(y) THEN Fail(v, "Overtaken")
                                                      ELSE Finish(v, y, S.led[y], "neighbours"))
  \/ v.pc = "alone" /\ Only(d, IF open = {} THEN [v EXCEPT !.pc = "ask"] ELSE Is(v, "note"))
  \/ v.pc = "read"  /\ \E s \in Views(x) : LET r == s.led[x] IN
                       Only(d, IF HasPath(v, r) THEN Stand(v, r, Nothing, -1)
                               ELSE [v EXCEPT !.pc = "claim", !.base = r])
  \/ v.pc = "claim" /\ Only(d, IF S.claim.holder \in {"", x} THEN Stand(v, v.base, Nothing, S.claim.stamp)
                               ELSE [v EXCEPT !.pc = "rival", !.claim = S.claim.stamp, !.verdict = S.claim.holder])
  \/ v.pc = "rival" /\ Only(d, Stand(v, v.base, S.led[v.verdict], v.claim))
  \/ v.pc \in {"look", "fetch", "learn"} /\ Only(d, IF v.pc = "look" THEN Looked(v) ELSE IF v.pc = "fetch" THEN Fetched(v)
                                                      ELSE Learned(v))
  \/ v.pc = "fence" /\ \E s \in Views(v.m.name) : LET r == s.led[v.m.name] IN
                       Only(d, IF r.stamp # v.m.over THEN After(v, v.m, r) ELSE Moved(v, v.m, r))
Carried(m, arrives, late, heard) ==
  [w EXCEPT !.S = IF arrives THEN Do(m) ELSE @, !.sent = IF late THEN @ \cup {m} ELSE @,
            !.n.faults = IF arrives /\ heard /\ ~late THEN @ ELSE @ + 1,
            !.n.stamp = IF "new" \in DOMAIN m /\ m.new.stamp > @ THEN m.new.stamp ELSE @]
Asked(d, arrives, late, heard) ==
  LET v == drv[d]  m == Sends(v)  new == Carried(m, arrives, late, heard)
      shown == [new EXCEPT !.past = <<m>>, !.n.losses = @ + 1, !.n.faults = n.faults] IN
  /\ v.pc \in {"ask", "row", "mark"} /\ (heard => arrives)
  /\ IF heard THEN \E s \in IF m.kind \in Writes /\ ~Does(m) THEN Views(m.name) ELSE {new.S} : Set(d, Heard(v, m, s))
     ELSE \E u \in Unheard(v, m) : Set(d, u)
  /\ Turns(new) \/ (Loss = "dirty" /\ ~arrives /\ ~late /\ m.kind \in Writes /\ Does(m) /\ Turns(shown))  \* cut off
\* ---- Spark
Starts(d, q, e) ==
  /\ drv[d].pc = "off" /\ n.runs < MaxRuns + 2 * n.calm /\ e \in Epochs /\ (Kind(q) = "next" => e = ckpt[q].done + 1)
  /\ Kind(q) = "once" => e = 0 /\ (\A x \in Drivers : drv[x].q # q) /\ \A a \in DOMAIN att : att[a].q # q
  /\ Set(d, [Off EXCEPT !.pc = "tasks", !.q = q, !.run = n.runs + 1, !.ep = e, !.from = e]) /\ Turns([w EXCEPT !.n.runs = @ + 1])
Note(d) == LET v == drv[d]  next == [Off EXCEPT !.pc = "tasks", !.q = v.q, !.run = v.run, !.ep = v.ep + 1, !.from = v.from] IN
  /\ v.pc = "note" /\ Set(d, IF Kind(v.q) = "next" /\ v.ep < LastEpoch THEN next ELSE Off)
  /\ Turns([w EXCEPT !.told = @ \cup {[q |-> v.q, e |-> v.ep, plan |-> PlanOf(v, v.ep), run |-> v.run, since |-> v.since,
                              saw |-> IF v.ep = v.from THEN v.saw ELSE 0]},
                     !.ckpt[v.q].done = IF v.ep > @ THEN v.ep ELSE @])
Crash(d) == drv[d].pc # "off" /\ (Calm => drv[d].pc = "failed") /\ Only(d, Off)
Mine(v) == {a \in DOMAIN att : att[a].run = v.run /\ att[a].e = v.ep}
Begin(d, p, size) ==  \* a task: a first one, a twin, a retry
  LET v == drv[d]  plan == IF PlanOf(v, v.ep) = 0 THEN v.run ELSE PlanOf(v, v.ep) IN
  /\ v.pc = "tasks" /\ (Len(att) < MaxAttempts \/ (Calm /\ \A a \in Mine(v) : att[a].p # p))
  /\ \E s \in Views(Name(v.q)) : LET r == s.led[Name(v.q)] IN
       World([w EXCEPT !.ckpt[v.q].plan[v.ep] = plan,
                       !.att = Append(@, [q |-> v.q, e |-> v.ep, p |-> p, run |-> v.run, plan |-> plan, size |-> size, done |-> 0]
                         @@ IF Decided(r, v.q, v.ep) THEN [st |-> "skips", tok |-> r.tok] ELSE [st |-> "runs", tok |-> 0])])
Stages(a, arrives, late) == LET m == [kind |-> "stage", c |-> <<a, att[a].done + 1>>] IN
  /\ att[a].st = "runs" /\ att[a].done < att[a].size
  /\ World([Carried(m, arrives, late, arrives) EXCEPT !.att[a].done = IF arrives THEN @ + 1 ELSE @])
Fails(a) == att[a].st = "runs" /\ att[a].size > 0 /\ World(
  [w EXCEPT !.att[a].st = "failed", !.n.faults = @ + 1, !.sent = @ \cup {Drop(Name(att[a].q), -1, {a})}])
IsReady(a)     == att[a].st = "skips" \/ (att[a].st = "runs" /\ att[a].done = att[a].size)
Commits(d, as) == LET v == drv[d]  runs == {a \in Range(as) : att[a].st = "runs"} IN
  /\ v.pc = "tasks"  \* these attempts, in the order of their partitions
  /\ Set(d, [v EXCEPT !.pc = IF Kind(v.q) = "next" THEN "read" ELSE "neighbours", !.since = n.losses,
                      !.parts = SelectSeq(as, LAMBDA a : a \in runs), !.skips = {att[a].tok : a \in Range(as) \ runs}])
  /\ w' = [w EXCEPT !.att = [a \in DOMAIN @ |-> [@[a] EXCEPT !.st = IF a \in runs THEN "handed" ELSE @]]]
Commit(d) == \E as \in [Parts -> Mine(drv[d])] : (\A p \in Parts : att[as[p]].p = p /\ IsReady(as[p])) /\ Commits(d, as)
\* ---- requests of an abort, a clean-up or an operator, which may die before they arrive
Emits(m, what) == World([w EXCEPT !.sent = @ \cup {m}, !.n[what] = @ + 1])
Logged(x)      == {c[1] : c \in {y \in S.log : Name(att[y[1]].q) = x}}
ClaimOf(x)     == IF S.claim.holder = x THEN S.claim.stamp ELSE 0
Doom(x, as) ==  \* Spark aborts an epoch, whose commit may be in flight; or gc counts it as stale
  LET r == S.led[x]  free == as \ Held(r)  q == IF as = {} THEN x ELSE att[CHOOSE a \in as : TRUE].q
      new == [r EXCEPT !.doomed = @ \cup free, !.q = IF @ = "" THEN q ELSE @] IN
  Emits([Write("doom", x, r, new) EXCEPT !.drop = free], "dooms")
Sweep(x, as, late) ==  \* as after a commit
  as # {} /\ (\A a \in as : IsOver(S.led[x], a)) /\ World(Carried(Drop(x, S.led[x].stamp, as), ~late, late, TRUE))
IsDropped(r) == \A m \in w.sent : m.kind = "drop" => m.drop \cap r.doomed = {}
Leave(x)     == LET r == S.led[x] IN  \* an abort that has dropped all doomed attempts removes an undecided ledger
  r.stamp # 0 /\ MayGo(r) /\ IsDropped(r) /\ Emits([Write("cut", x, r, Nothing) EXCEPT !.claim = ClaimOf(x)], "leaves")
Forget(x) ==
  LET r    == IF S.led[x].stamp # 0 THEN S.led[x] ELSE [Nothing EXCEPT !.q = x, !.retired = {att[a].q : a \in Logged(x)}]
      tomb == [r EXCEPT !.retired = @ \cup {r.q}, !.gone = TRUE]
      m    == [Write("doom", x, r, tomb) EXCEPT !.drop = {a \in Logged(x) : IsOver(tomb, a)}, !.claim = ClaimOf(x)] IN
  ~r.open /\ Emits(m, "commands")
Recover(d, x) == LET r == S.led[x] IN
  drv[d].pc = "off" /\ r.open /\ ~Overtaken(x) /\ Turns([w EXCEPT !.n.commands = @ + 1])
  /\ Set(d, Finish([Off EXCEPT !.q = r.q, !.ep = r.epoch], x, r, "recover"))
AcceptLoss(d, x) == LET r == S.led[x] IN
  drv[d].why = "Lost" /\ drv[d].ret = "recover" /\ r.open /\ Turns([w EXCEPT !.n.accepted = @ + 1])
  /\ Set(d, Asks([drv[d] EXCEPT !.why = ""], Write("finish", x, r, Closed(r))))
\* ---- the network, the server, its disks, a checkpoint
Deliver(u, again) == LET m == Stamped(u) IN
  World([Carried(m, TRUE, FALSE, ~again) EXCEPT !.sent = (@ \ {u}) \cup Then(m) \cup IF again THEN {m} ELSE {}])
Refuse(as) == as # w.bad /\ World([w EXCEPT !.bad = as, !.n.refusals = IF as = {} THEN @ ELSE @ + 1])
Fallen(old) ==
  CASE Loss = "suffix" -> {[old EXCEPT !.fence = S.fence]}  \* fences come from a clock
    [] Loss \in {"primary", "lag"} -> {S}
    [] Loss = "ledger" -> {[S EXCEPT !.led[x] = old.led[x]] : x \in Names}
    [] Loss = "log"    -> {[S EXCEPT !.log = old.log]}  [] Loss = "dirty" -> {S}
    [] Loss = "place"  -> {[S EXCEPT !.at[l] = old.at[l]] : l \in Places} \cup {[old EXCEPT !.at = S.at, !.fence = S.fence]}
Keeps == Loss \notin {"", "dirty"} /\ n.losses = 0
         /\ World([w EXCEPT !.past = <<S>>, !.n.losses = IF Loss = "primary" THEN 1 ELSE 0])
Crosses == Loss = "primary" /\ w.past # <<>>  \* the next requests, whoever sends them, reach the other primary
           /\ World([w EXCEPT !.past = <<S>>, !.S = [w.past[1] EXCEPT !.fence = S.fence], !.n.losses = @ + 1])
Loses == w.past # <<>> /\ \E s \in Fallen(w.past[1]) :
  World([w EXCEPT !.past = <<>>, !.S = s, !.n.losses = IF Loss \in {"dirty", "lag"} THEN @ ELSE @ + 1])
AllOff == \A d \in Drivers : drv[d].pc = "off"
Restore(q, e) == AllOff /\ e < ckpt[q].done /\ World([w EXCEPT !.n.restores = @ + 1,
  !.ckpt[q] = [done |-> e, plan |-> [x \in Epochs |-> IF x > e THEN 0 ELSE @.plan[x]]]])
Calms == AllOff /\ World([w EXCEPT !.n.calm = @ + 1, !.bad = {}])  \* troubles end, and queries restart
Next ==
  \/ \E d \in Drivers :
       \/ Looks(d) \/ Note(d) \/ Crash(d) \/ Commit(d) \/ \E x \in Names : Recover(d, x) \/ AcceptLoss(d, x)
       \/ \E arrives, late, heard \in BOOLEAN : Asked(d, arrives, late, heard)
       \/ (\E q \in Queries, e \in Epochs : Starts(d, q, e)) \/ \E p \in Parts, size \in Sizes : Begin(d, p, size)
  \/ \E a \in DOMAIN att : \/ Fails(a) \/ Refuse({a}) \/ (att[a].done > 0 /\ Doom(Name(att[a].q), {a}))
                           \/ \E arrives, late \in BOOLEAN : (arrives \/ late) /\ Stages(a, arrives, late)
  \/ \E x \in Names : Leave(x) \/ Forget(x) \/ \E late \in BOOLEAN :
                         Sweep(x, {a \in DOMAIN att : Name(att[a].q) = x /\ IsOver(S.led[x], a)}, late)
  \/ (\E m \in w.sent, again \in BOOLEAN : Deliver(m, again))
  \/ Refuse({}) \/ (w.past = <<>> /\ Keeps) \/ Crosses \/ Loses \/ Calms \/ \E q \in Queries, e \in -1..LastEpoch : Restore(q, e)
Spec == Init /\ [][Next]_<<w, drv>>
Fair == Spec /\ WF_<<w, drv>>(Calm /\ Next)
=============================================================================
