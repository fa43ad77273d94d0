-------------------------------- MODULE trace --------------------------------
(* Schedules of the explorer, for TLC to say whether the model allows each: every line is a step of sparkonce.tla *)
(* or none, and leaves the store as it was seen. What a driver knows was not seen; TLC finds what it can be.      *)
EXTENDS sparkonce

CONSTANT Schedules  \* sequences of lines

VARIABLES which, at, seen
Line   == Schedules[which][at]
Told(x) == LET r == S.led[x] IN
  [q |-> r.q, epoch |-> r.epoch, man |-> r.man, retired |-> r.retired, doomed |-> r.doomed, gone |-> r.gone,
   app |-> IF r.open /\ Profile # "converging" THEN S.app[x] ELSE 0]
Looked == [x \in Names |-> Told(x)] @@ [log |-> S.log, holder |-> S.claim.holder, rows |-> S.at[1].rows]
Quiet  == UNCHANGED <<w, drv>>
Awaits(v, l) ==  \* whether it is this that a driver reads next
  \/ v.pc = "read" /\ l.of = Name(v.q)
  \/ v.pc = "read claim" /\ l.of = "claim"
  \/ v.pc = "read rival" /\ l.of = v.verdict
  \/ v.pc = "fence" /\ l.of = v.m.name
  \/ v.pc = l.of
Sent(v, l) == v.pc \in Asking /\ LET m == Sends(v) IN m.kind \in l.kinds /\ (l.k = 0 \/ m.k = l.k)
Does_(l) ==
  CASE l.act = "begins"   -> IF drv[l.d].pc = "tasks" THEN Quiet /\ drv[l.d].ep = l.e ELSE Starts(l.d, l.q, l.e)
    [] l.act = "task"     -> Begin(l.d, l.p, l.size) /\ w'.att[Len(w'.att)].st = l.st
    [] l.act = "stages"   -> Stages(l.a, l.arrives, l.late)
    [] l.act = "fails"    -> Fails(l.a)
    [] l.act = "commits"  -> Commits(l.d, l.as)
    [] l.act = "gives up" -> GivenUp(l.d)
    [] l.act = "reads"    -> IF Awaits(drv[l.d], l) THEN Looks(l.d)
                             ELSE Quiet \/ \E x \in Names : l.of = x /\ Recover(l.d, x)
    [] l.act = "cleans"   -> IF drv[l.d].pc = "clean" /\ l.arrives THEN Cleans(l.d) ELSE Quiet \/ Cleans(l.d)
    [] l.act = "asks"     -> IF Sent(drv[l.d], l) THEN Asked(l.d, l.arrives, l.late, l.heard)
                             ELSE IF l.heard /\ drv[l.d].pc = "fence" THEN Looks(l.d) ELSE Quiet
    [] l.act = "own row"  -> IF Sent(drv[l.d], l) /\ ~Fits({Sends(drv[l.d]).c[1]}) THEN Asked(l.d, TRUE, FALSE, TRUE) ELSE Quiet
    [] l.act = "refused"  -> \/ drv[l.d].pc = "failed" /\ drv[l.d].why = l.why /\ Quiet
                             \/ l.why = "Unreachable" /\ IF drv[l.d].pc \in {"tasks", "off"} THEN Quiet ELSE GivesUp(l.d)
    [] l.act = "notes"    -> Note(l.d)
    [] l.act = "ends"     -> IF drv[l.d].pc = "off" THEN Quiet ELSE Crash(l.d)
    [] l.act = "dooms"    -> Doom(l.x, l.as)
    [] l.act = "forgets"  -> Forget(l.x)
    [] l.act = "leaves"   -> Leave(l.x)
    [] l.act = "touches"  -> Touch(l.x)
    [] l.act = "sweeps"   -> Sweep(l.x, l.as)
    [] l.act = "delivers" -> \E m \in w.sent : m.kind \in l.kinds /\ Deliver(m, l.again)
    [] l.act = "refuses"  -> Refuse(l.as)
    [] l.act = "accepts"  -> Accept
    [] l.act = "keeps"    -> Keeps
    [] l.act = "loses"    -> Loses
Follow ==
  /\ at <= Len(Schedules[which])
  /\ Does_(Line)
  /\ seen' = Line.saw @@ seen /\ Looked' = seen' /\ at' = at + 1 /\ which' = which
  /\ at > TLCGet(which) => TLCSet(which, at) /\ PrintT(<<"reached", which, at>>)
TraceInit == /\ Init /\ which \in DOMAIN Schedules /\ at = 1 /\ seen = Looked
             /\ \A s \in DOMAIN Schedules : TLCSet(s, 0)
TraceSpec == TraceInit /\ [][Follow]_<<w, drv, which, at, seen>>
NewLog    == IF "log" \in DOMAIN Line.saw THEN Line.saw.log ELSE seen.log
Gone(as)  == {{a \in as : \A c \in NewLog : c[1] # a}}
Much      == [x \in {"runs", "faults", "dooms", "leaves", "commands", "restores", "refusals", "losses", "accepted"} |-> 1000]
=============================================================================
