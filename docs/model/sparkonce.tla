------------------------------ MODULE sparkonce ------------------------------
(* What docs/protocol.md says: drivers, tasks and operators around one store, what goes wrong, and promises.    *)
EXTENDS commit

CONSTANTS
  Drivers,   \* places, in each of which one process lives at a time: a driver's, or an operator's
  Parts, Sizes, LastEpoch, MaxAttempts, \* partitions; how many chunks an attempt may have
  Most,      \* how often each kind of trouble may come
  Loss       \* what the store may lose, once: "suffix", "ledger", "log", "place"; "dirty": it shows what it will lose

Epochs  == 0..LastEpoch
Some(x) == n[x] < Most[x]
Set(d, v) == drv' = [drv EXCEPT ![d] = v]
Only(d, v) == Set(d, v) /\ UNCHANGED w
World(new) == w' = new /\ UNCHANGED drv
Init ==
  /\ drv = [d \in Drivers |-> Off]
  /\ w = [att |-> <<>>, bad |-> {}, sent |-> {}, told |-> {}, past |-> <<>>,
          ckpt |-> [q \in Queries |-> [done |-> -1, plan |-> [e \in Epochs |-> 0]]],
          n |-> [x \in {"stamp", "plans"} \cup DOMAIN Most |-> 0],
          S |-> [led |-> [x \in Names |-> Nothing], app |-> [x \in Names |-> 0], claim |-> [holder |-> "", stamp |-> 0],
                 log |-> {}, fence |-> 0, hist |-> <<>>, known |-> [l \in Places |-> <<0, {}>>],
                 at |-> [l \in Places |-> [fence |-> 0, ks |-> {}, rows |-> <<>>]]]]

\* ---- a commit, request by request
Views(x) == {S} \cup {[S EXCEPT !.led[x] = g.rec] : g \in {y \in Range(w.past) : Loss = "dirty" /\ y.name = x}}
Seen == [l \in Places |-> <<S.at[l].fence, S.at[l].ks>>]
Looks(d) ==
  LET v == drv[d]  x == Name(v.q)  m == v.m IN
  \/ /\ v.pc = "neighbours"  \* a batch first finishes what others have decided
     /\ LET open == {y \in Names \ {x} : S.led[y].open} IN
        IF open = {} THEN Only(d, Again(v)) ELSE \E y \in open : Only(d, Finish(v, y, S.led[y], "neighbours"))
  \/ /\ v.pc = "read" /\ \E s \in Views(x) : LET r == s.led[x] IN
        Only(d, IF Follows # "next" \/ (r.at /\ Decided(r, v.q, 0)) THEN Stand(v, r, Nothing, -1)
                ELSE [v EXCEPT !.pc = "read claim", !.base = r])
  \/ /\ v.pc = "read claim"
     /\ Only(d, IF S.claim.holder \in {"", x} THEN Stand(v, v.base, Nothing, S.claim.stamp)
                ELSE [v EXCEPT !.pc = "read rival", !.claim = S.claim.stamp, !.verdict = S.claim.holder])
  \/ v.pc = "read rival" /\ Only(d, Stand(v, v.base, S.led[v.verdict], v.claim))
  \/ /\ v.pc = "look"
     /\ Only(d, IF IsWhole(m.new.man) THEN [v EXCEPT !.pc = "ask"]
                ELSE IF IsThere(m) THEN Fail(v, "Missing") ELSE IF S.led[x].stamp = 0 THEN After(v, m, Nothing) ELSE Again(v))
  \/ /\ v.pc = "fetch"
     /\ LET man == m.new.man  is == S.led[m.name].tok = m.new.tok  u == [v EXCEPT !.known = IF v.k = 1 THEN S.known ELSE @] IN
        Only(d, IF (~is /\ v.ack # m.new.tok) \/ (Profile = "lanes" /\ (~is \/ S.app[m.name] = Len(man))) THEN [v EXCEPT !.pc = "ask"]
                ELSE IF man[v.k] \in S.log THEN [u EXCEPT !.pc = "row"]
                ELSE IF ~is \/ S.app[m.name] >= Len(man) THEN [v EXCEPT !.pc = "ask"] ELSE Fail(v, "Lost"))
  \/ /\ v.pc = "learn"  \* lanes may have lost what they had
     /\ Only(d, IF \E l \in Places : S.at[l].fence < m.new.fence \/ S.at[l].ks # 1..Len(m.new.man)
                THEN [v EXCEPT !.pc = "fetch", !.k = 1, !.place = 1] ELSE [v EXCEPT !.pc = "mark", !.known = Seen])
  \/ /\ v.pc = "fence" /\ \E s \in Views(m.name) : LET r == s.led[m.name] IN
        Only(d, IF r.stamp # m.over THEN After(v, m, r) ELSE Moved(v, m, r))
Asking == {"ask", "apply", "row", "mark"}
Asked(d, arrives, late, heard) ==  \* a request may be lost, its answer too; it may come late, or once more
  LET v == drv[d]  m == Sends(v)  done == Do(m)  calm == arrives /\ heard /\ ~late IN
  /\ v.pc \in Asking /\ (calm \/ Some("faults")) /\ (heard => arrives)
  /\ w' = [w EXCEPT !.S = IF arrives THEN done ELSE @, !.sent = IF late THEN @ \cup {m} ELSE @,
                    !.n.faults = IF calm THEN @ ELSE @ + 1, !.n.stamp = IF v.pc = "ask" /\ IsNew(v.m) THEN @ + 1 ELSE @]
  /\ IF heard THEN \E s \in (IF m.kind \in Writes /\ ~Does(m) THEN Views(m.name) ELSE {done}) : Set(d, Heard(v, m, s))
     ELSE \E u \in Unheard(v, m) : Set(d, u)
CutOff(d) ==  \* a primary takes a write that is no primary any more
  LET v == drv[d]  m == Sends(v) IN
  /\ Loss = "dirty" /\ Some("losses") /\ v.pc \in Asking /\ m.kind \in Writes /\ Does(m) /\ (\E u \in Unheard(v, m) : Set(d, u))
  /\ w' = [w EXCEPT !.past = <<[name |-> m.name, rec |-> m.new]>>, !.n.losses = @ + 1,
                    !.n.stamp = IF IsNew(v.m) THEN @ + 1 ELSE @]
GivesUp(d) == Some("faults") /\ drv[d].pc \notin {"off", "tasks", "clean", "note", "failed"}
              /\ Set(d, Fail(drv[d], "Unreachable")) /\ w' = [w EXCEPT !.n.faults = @ + 1]
Listed(as) == {as}  \* what a listing shows of them; it may be late
Logged(x)  == {a \in Of(S.log) : Name(att[a].q) = x}
Cleans(d)  ==
  LET v == drv[d]  r == v.m.new
      own  == IF v.ret = "commit" THEN Range(v.parts) \ Held(r) ELSE {}
      over == {a \in Logged(v.m.name) : IsOver(r, a) /\ a \notin Held(r)} IN
  /\ v.pc = "clean"
  /\ Set(d, IF v.ret = "retired" THEN Did(v) ELSE IF ~v.heard THEN Off ELSE IF Follows # "once" THEN [v EXCEPT !.pc = "note"]
            ELSE Asks(v, [Write("cut", v.m.name, Nothing, Nothing) EXCEPT !.over = v.m.over]))
  /\ \/ UNCHANGED w
     \/ /\ IsThere(v.m) \/ Profile = "converging"
        /\ \E some \in Listed(over) : w' = [w EXCEPT !.S.log = {c \in @ : c[1] \notin own \cup some}]

\* ---- Spark
Plan(q, e) == IF ckpt[q].plan[e] = 0 THEN n.plans + 1 ELSE ckpt[q].plan[e]
Begins(d, q, run, e, new) ==
  IF e > LastEpoch THEN Set(d, Off) /\ w' = new ELSE
  /\ Set(d, [Off EXCEPT !.pc = "tasks", !.q = q, !.run = run, !.ep = e, !.plan = Plan(q, e)])
  /\ w' = [new EXCEPT !.ckpt[q].plan[e] = Plan(q, e), !.n.plans = IF Plan(q, e) > @ THEN @ + 1 ELSE @]
Starts(d, q, e) ==
  /\ drv[d].pc = "off" /\ Some("runs")
  /\ CASE Follows = "next"  -> e = ckpt[q].done + 1
       [] Follows = "grows" -> TRUE
       [] Follows = "once"  -> e = 0 /\ ckpt[q].plan[0] = 0
  /\ Begins(d, q, n.runs + 1, e, [w EXCEPT !.n.runs = @ + 1])
Note(d) == LET v == drv[d] IN
  /\ v.pc = "note"
  /\ Begins(d, v.q, v.run, IF Follows = "next" THEN v.ep + 1 ELSE LastEpoch + 1,
            [w EXCEPT !.told = @ \cup {[q |-> v.q, e |-> v.ep, plan |-> v.plan, since |-> v.since]},
                      !.ckpt[v.q].done = IF v.ep > @ THEN v.ep ELSE @])
Crash(d) == drv[d].pc # "off" /\ Only(d, Off)
Begin(d, p, size) == LET v == drv[d] IN  \* a task: a first one, a twin, a retry
  /\ v.pc = "tasks" /\ Len(att) < MaxAttempts
  /\ \E s \in Views(Name(v.q)) : LET r == s.led[Name(v.q)] IN
       World([w EXCEPT !.att = Append(@, [q |-> v.q, e |-> v.ep, p |-> p, run |-> v.run, plan |-> v.plan, tok |-> r.tok,
                              size |-> size, done |-> 0, st |-> IF Decided(r, v.q, v.ep) THEN "skips" ELSE "runs"])])
Stages(a, arrives, late) ==
  LET m == [kind |-> "stage", c |-> <<a, att[a].done + 1>>] IN
  /\ att[a].st = "runs" /\ att[a].done < att[a].size /\ ((arrives /\ ~late) \/ Some("faults"))
  /\ World([w EXCEPT !.S = IF arrives THEN Do(m) ELSE @, !.att[a].done = IF arrives THEN @ + 1 ELSE @,
                     !.sent = IF late THEN @ \cup {m} ELSE @, !.n.faults = IF late THEN @ + 1 ELSE @])
Fails(a) == Some("faults") /\ att[a].st = "runs" /\ att[a].size > 0 /\
  World([w EXCEPT !.att[a].st = "failed", !.n.faults = @ + 1,
                  !.sent = @ \cup {[kind |-> "drop", name |-> Name(att[a].q), over |-> -1, drop |-> {a}]}])
Mine(v)  == {a \in DOMAIN att : att[a].run = v.run /\ att[a].e = v.ep /\
                                (att[a].st = "skips" \/ (att[a].st = "runs" /\ att[a].done = att[a].size))}
Commits(d, as) == LET v == drv[d] IN  \* these attempts, in the order of their partitions
  /\ v.pc = "tasks"
  /\ Set(d, [v EXCEPT !.pc = IF Follows = "next" THEN "read" ELSE "neighbours", !.since = n.losses,
                      !.parts = SelectSeq(as, LAMBDA a : att[a].st = "runs"),
                      !.skips = {att[a].tok : a \in {x \in Range(as) : att[x].st = "skips"}}])
  /\ w' = [w EXCEPT !.att = [a \in DOMAIN @ |-> IF a \in Range(as) /\ @[a].st = "runs" THEN [@[a] EXCEPT !.st = "handed"]
                                                ELSE @[a]]]
Commit(d) == \E as \in [Parts -> Mine(drv[d])] : (\A p \in Parts : att[as[p]].p = p) /\ Commits(d, as)

\* ---- aborts, and an operator's commands: each reads, then writes over what it has read
Emits(m, what) == World([w EXCEPT !.sent = @ \cup {m}, !.n[what] = @ + 1])
AttemptsOf(x)     == {a \in DOMAIN att : Name(att[a].q) = x}
GivenUp(d) == drv[d].heard /\ drv[d].pc \notin {"off", "tasks", "failed"} /\ Only(d, [drv[d] EXCEPT !.heard = FALSE])
Doom(x, as) ==  \* Spark aborts an epoch, whose commit may be on its way; or gc takes it for stale
  LET r == S.led[x]  free == as \ Held(r)  q == att[CHOOSE a \in as : TRUE].q IN
  as # {} /\ Emits([Write("doom", x, r, [r EXCEPT !.doomed = @ \cup free, !.q = IF @ = "" THEN q ELSE @])
                    EXCEPT !.drop = free], "dooms")
ClaimOf(x) == IF S.claim.holder = x THEN S.claim.stamp ELSE 0
Leave(x) == S.led[x].stamp # 0 /\ MayGo(S.led[x])  \* behind an abort, and by gc
            /\ Emits([Write("cut", x, S.led[x], Nothing) EXCEPT !.claim = ClaimOf(x)], "leaves")
Touch(x) == Emits(Write("fence", x, S.led[x], [S.led[x] EXCEPT !.q = IF @ = "" THEN x ELSE @]), "faults")
Sweep(x, as) == LET r == S.led[x] IN  \* as each commit does
  as # {} /\ as \subseteq {a \in AttemptsOf(x) : IsOver(r, a)} \ Held(r)
  /\ World([w EXCEPT !.sent = @ \cup {[kind |-> "drop", name |-> x, over |-> r.stamp, drop |-> as]}])
Forget(x) ==
  LET r    == IF S.led[x].stamp # 0 THEN S.led[x] ELSE [Nothing EXCEPT !.q = x, !.retired = {att[a].q : a \in Logged(x)}]
      tomb == [r EXCEPT !.retired = @ \cup {r.q}, !.gone = TRUE]
      over == {a \in Logged(x) : IsOver(tomb, a)} IN
  ~r.open /\ Emits([Write("doom", x, r, tomb) EXCEPT !.drop = over, !.claim = ClaimOf(x)], "commands")
Recover(d, x) == LET r == S.led[x] IN
  drv[d].pc = "off" /\ r.open /\ Some("commands") /\ w' = [w EXCEPT !.n.commands = @ + 1]
  /\ Set(d, Finish([Off EXCEPT !.q = r.q, !.ep = r.epoch], x, r, "recover"))
AcceptLoss(d, x) == drv[d].why = "Lost" /\ drv[d].ret = "recover" /\ S.led[x].open /\ Some("accepted")
  /\ w' = [w EXCEPT !.n.accepted = @ + 1] /\ Set(d, Asks([drv[d] EXCEPT !.why = ""], Write("finish", x, S.led[x], Closed(S.led[x]))))

\* ---- the network, the server, its disks
Deliver(u, again) ==
  LET m == Stamped(u) IN
  /\ again => Some("faults")
  /\ World([w EXCEPT !.S = Do(m), !.n.stamp = IF m = u THEN @ ELSE @ + 1, !.n.faults = IF again THEN @ + 1 ELSE @,
                     !.sent = (@ \ {u}) \cup Then(m) \cup IF again THEN {m} ELSE {}])
Refuse(as) == as # {} /\ World([w EXCEPT !.bad = as, !.n.refusals = @ + 1])
Accept     == w.bad # {} /\ World([w EXCEPT !.bad = {}])
Restore(q, e) ==  \* an older copy of the checkpoint, while no driver lives
  /\ Some("restores") /\ e < ckpt[q].done /\ \A d \in Drivers : drv[d].pc = "off"
  /\ World([w EXCEPT !.ckpt[q] = [done |-> e, plan |-> [x \in Epochs |-> IF x > e THEN 0 ELSE @.plan[x]]], !.n.restores = @ + 1])
Fallen(old) ==
  CASE Loss = "suffix" -> {[old EXCEPT !.fence = S.fence]}  \* fences come from a clock
    [] Loss = "ledger" -> {[S EXCEPT !.led[x] = old.led[x], !.app[x] = old.app[x]] : x \in Names}
    [] Loss = "log"    -> {[S EXCEPT !.log = old.log]}
    [] Loss = "place"  -> {[S EXCEPT !.at[l] = old.at[l]] : l \in Places} \cup {[old EXCEPT !.at = S.at, !.fence = S.fence]}
    [] Loss = "dirty"  -> {S}
Keeps == Loss \notin {"", "dirty"} /\ World([w EXCEPT !.past = <<S>>])
Loses == w.past # <<>> /\ \E s \in Fallen(w.past[1]) :
  World([w EXCEPT !.past = <<>>, !.S = s, !.n.losses = IF Loss = "dirty" THEN @ ELSE @ + 1])

Works(d) == \/ Looks(d) \/ Asked(d, TRUE, FALSE, TRUE) \/ Cleans(d) \/ Note(d) \/ Commit(d)
            \/ \E q \in Queries, e \in Epochs : Starts(d, q, e)
            \/ \E p \in Parts, size \in Sizes : Begin(d, p, size)
Next ==
  \/ \E d \in Drivers : \/ Works(d) \/ Crash(d) \/ GivesUp(d) \/ CutOff(d) \/ (n.dooms < Most.dooms /\ GivenUp(d))
                        \/ \E arrives, late, heard \in BOOLEAN : Asked(d, arrives, late, heard)
                        \/ \E x \in Names : Recover(d, x) \/ AcceptLoss(d, x)
                        \/ (Some("refusals") /\ drv[d].pc \in Asking /\ Refuse(Range(drv[d].parts)))
  \/ \E a \in DOMAIN att : Fails(a) \/ \E arrives, late \in BOOLEAN : (arrives \/ late) /\ Stages(a, arrives, late)
  \/ \E x \in Names : \/ (Some("leaves") /\ Leave(x)) \/ (Some("commands") /\ Forget(x))
                      \/ (Some("dooms") /\ \E a \in AttemptsOf(x) : att[a].done > 0 /\ Doom(x, {a}))
  \/ \E m \in w.sent, again \in BOOLEAN : Deliver(m, again)
  \/ Accept \/ (w.past = <<>> /\ Some("losses") /\ Keeps) \/ Loses \/ \E q \in Queries, e \in -1..LastEpoch : Restore(q, e)
Spec == Init /\ [][Next]_<<w, drv>>
Symmetry == Permutations(Drivers)

\* ---- promises
H == S.hist
Times(c, l)  == Cardinality({i \in DOMAIN S.at[l].rows : S.at[l].rows[i] = c})
Took(h)      == \A c \in Range(Flat(h.as)), l \in Places : Times(c, l) = 1
Once         == \A l \in Places : \A c \in Range(S.at[l].rows) : Times(c, l) = 1
OnlyDecided  == \A l \in Places : \A c \in Range(S.at[l].rows) : \E h \in Range(H) : c[1] \in Range(h.as)
EpochsInOrder == Follows = "next" => \A i \in DOMAIN H :  \* 0, 1, ... of each query, and no query comes back
  /\ H[i].e = Cardinality({j \in 1..(i - 1) : H[j].q = H[i].q})
  /\ \A j \in 1..(i - 1) : H[j].q = H[i].q => H[i - 1].q = H[i].q
RowsInOrder  == \A l \in Places : \A i, j \in DOMAIN S.at[l].rows : \A x, y \in DOMAIN H :
  (i < j /\ S.at[l].rows[i][1] \in Range(H[x].as) /\ S.at[l].rows[j][1] \in Range(H[y].as)) => x <= y
AllOfIt      == \A h \in Range(H) : Took(h) \/ \E x \in Names : S.led[x].open /\ S.led[x].tok = h.tok
OnePlan      == \A h \in Range(H) : \A a \in Range(h.as) : att[a].e = h.e /\ \A b \in Range(h.as) : att[a].plan = att[b].plan
AllParts     == \A h \in Range(H) : {att[a].p : a \in Range(h.as)} = Parts
Kept         == \A t \in {x \in w.told : Loss \notin {"suffix", "ledger", "place"} \/ x.since = n.losses} :
  \E h \in Range(H) : h.q = t.q /\ h.e = t.e /\ Took(h) /\ \A a \in Range(h.as) : att[a].plan = t.plan
NotDropped   == \A x \in Names : LET r == S.led[x] IN r.open => \A i \in (S.app[x] + 1)..Len(r.man) :
  r.man[i] \in S.log \/ (ByPlace /\ \A l \in Places : Times(r.man[i], l) = 1)
Whys         == {drv[d].why : d \in Drivers}
NoFalseAlarm ==
  /\ n.losses = 0 => Whys \cap {"SinkBehind", "DecisionLost", "Lost"} = {}
  /\ n.restores = 0 => "Diverged" \notin Whys
  /\ n.runs = 1 /\ n.dooms + n.commands + n.losses + n.faults + n.refusals = 0 => Whys = {""}
=============================================================================
