-------------------------------- MODULE trace --------------------------------
(* Schedules of the explorer; TLC checks whether the model allows each: every line is a step of sparkonce.tla     *)
(* or none, and leaves the store in the observed state. TLC finds the possible knowledge of drivers.              *)
EXTENDS promises

CONSTANT Schedules  \* sequences of lines

VARIABLES which, at, seen
Line    == Schedules[which][at]
Quiet   == UNCHANGED <<w, drv>>
Awaits(v, l) ==  \* whether a driver reads this next
  \/ v.pc = "read" /\ l.of = Name(v.q)
  \/ v.pc = "rival" /\ l.of = v.verdict
  \/ v.pc = "fence" /\ l.of = v.m.name
  \/ v.pc = l.of
Sent(v, l) == v.pc \in {"ask", "row", "mark"} /\ LET m == Sends(v) IN m.kind \in l.kinds /\ (l.k = 0 \/ m.k = l.k)
Takes(l) ==
  CASE l.act = "begins"   -> IF drv[l.d].pc = "tasks" THEN Quiet /\ drv[l.d].ep = l.e ELSE Starts(l.d, l.q, l.e)
    [] l.act = "task"     -> Begin(l.d, l.p, l.size) /\ w'.att[Len(w'.att)].st = l.st
    [] l.act = "stages"   -> Stages(l.a, l.arrives, l.late)
    [] l.act = "fails"    -> Fails(l.a)
    [] l.act = "commits"  -> Commits(l.d, l.as)
    [] l.act = "reads"    -> IF Awaits(drv[l.d], l) THEN Looks(l.d)
                             ELSE Quiet \/ \E x \in Names : l.of = x /\ Recover(l.d, x)
    [] l.act = "asks"     -> IF Sent(drv[l.d], l) THEN Asked(l.d, l.arrives, l.late, l.heard)
                             ELSE IF l.heard /\ drv[l.d].pc = "fence" THEN Looks(l.d) ELSE Quiet
    [] l.act = "own row"  -> IF Sent(drv[l.d], l) /\ ~Fits({Sends(drv[l.d]).c[1]}) THEN Asked(l.d, TRUE, FALSE, TRUE) ELSE Quiet
    [] l.act = "refused"  -> Quiet /\ (l.why = "Unreachable" \/ (drv[l.d].pc = "failed" /\ drv[l.d].why = l.why))
    [] l.act = "notes"    -> Note(l.d)
    [] l.act = "ends"     -> IF drv[l.d].pc = "off" THEN Quiet ELSE Crash(l.d)
    [] l.act = "dooms"    -> Doom(l.x, l.as)
    [] l.act = "forgets"  -> Forget(l.x)
    [] l.act = "leaves"   -> Leave(l.x)
    [] l.act = "drops"    -> \/ l.arrives /\ \E m \in w.sent : m.kind = "drop" /\ Deliver(m, l.again)
                             \/ Sweep(l.x, l.as, ~l.arrives) \/ (~l.arrives /\ Quiet)
    [] l.act = "delivers" -> \E m \in w.sent : m.kind \in l.kinds /\ Deliver(m, l.again)
    [] l.act = "refuses"  -> IF l.as = w.bad THEN Quiet ELSE Refuse(l.as)
    [] l.act = "accepts"  -> Refuse({})
    [] l.act = "keeps"    -> Keeps
    [] l.act = "loses"    -> Loses
Follow ==
  /\ at <= Len(Schedules[which])
  /\ Takes(Line)
  /\ seen' = Line.saw @@ seen /\ Shown' = seen' /\ at' = at + 1 /\ which' = which
  /\ at > TLCGet(which) => TLCSet(which, at) /\ PrintT(<<"reached", which, at>>)
TraceInit == /\ Init /\ which \in DOMAIN Schedules /\ at = 1 /\ seen = Shown
             /\ \A s \in DOMAIN Schedules : TLCSet(s, 0)
TraceSpec == TraceInit /\ [][Follow]_<<w, drv, which, at, seen>>
AtOnce(r) == TRUE  \* the gc of the explorer does not wait for an hour
Much      == [x \in {"faults", "dooms", "leaves", "commands", "restores", "refusals", "losses", "accepted", "calm"} |-> 1000]
=============================================================================
