------------------------------- MODULE commit -------------------------------
(* A driver's commit (guards.py, commit.py, registers.py): what it makes of what it has read, and which request *)
(* it sends next. `v` is what a driver knows; L is the ledger of its name, R the one of another name that holds *)
(* its checkpoint path.                                                                                         *)
EXTENDS store

CONSTANTS
  Policy,    \* on a new checkpoint: "fail", "continue" (b after a), "repeatable" (anyone)
  Follows    \* which epochs may come after one: "next" (streams), "grows", "once" (batches)

\* ---- identity comes before any comparison of epochs
Allowed(q, old, samePath) ==
  \/ Untouched(old) \/ old.gone
  \/ Policy = "continue" /\ q = "b" /\ old.q = "a"
  \/ Policy = "repeatable" /\ samePath
Refusal(q, L, R) ==
  IF Retires(L, q) \/ Retires(R, q) THEN "Retired"
  ELSE IF R.stamp # 0 /\ ~Allowed(q, R, TRUE) THEN "Replaced"
  ELSE IF L.stamp # 0 /\ L.q # q /\ ~Allowed(q, L, L.at) THEN "Replaced" ELSE ""
Succeeded(q, L) == [L EXCEPT !.q = q, !.retired = @ \cup {L.q}, !.epoch = -1, !.tok = 0, !.plan = 0,
                             !.replayed = {}, !.heir = @ \/ L.gone, !.gone = FALSE]
Base(q, L, R) ==
  LET own  == IF L.stamp = 0 THEN [Nothing EXCEPT !.q = q] ELSE IF L.q = q THEN L ELSE Succeeded(q, L)
      base == IF R.stamp = 0 \/ own.epoch >= 0 THEN own
              ELSE [own EXCEPT !.retired = @ \cup R.retired \cup {R.q}, !.heir = @ \/ ~Untouched(R)]
  IN [base EXCEPT !.retired = @ \ {q}]

\* ---- epochs of one query
Differ(one, other)   == one # 0 /\ other # 0 /\ one # other  \* what is not known contradicts nothing
IsSuperseded(v, L)   == v.run \in L.past
HasReplayed(v, L)    == v.ep = L.epoch /\ \E x \in L.replayed : x[1] = v.run /\ x[2] < v.ep
IsBehind(v, L)       == v.ep < L.epoch
IsSinkBehind(v, L)   == v.ep > L.epoch + 1
IsWrittenTwice(v, L) == v.run = L.run \/ <<v.run, v.ep>> \in L.replayed
HasDiverged(v, L)    == \/ v.ep = L.epoch /\ Differ(v.plan, L.plan)
                        \/ v.ep = L.epoch + 1 /\ v.ep > 0 /\ Differ(ckpt[v.q].plan[v.ep - 1], L.plan)
Judge(v, L) ==
  IF IsSuperseded(v, L) \/ HasReplayed(v, L) THEN "Concurrent"
  ELSE IF v.ep = L.epoch THEN IF HasDiverged(v, L) THEN "Diverged"
                              ELSE IF Follows = "grows" /\ IsWrittenTwice(v, L) THEN "WrittenTwice" ELSE "replay"
  ELSE IF IsBehind(v, L) THEN "Behind"
  ELSE IF Follows # "next" THEN "next"
  ELSE IF IsSinkBehind(v, L) THEN "SinkBehind"
  ELSE IF HasDiverged(v, L) THEN "Diverged" ELSE "next"
IsStaleSkip(v)   == \E tok \in v.skips : ~(v.verdict = "replay" /\ tok = v.base.tok)
IsDoomed(v)      == Range(v.parts) \cap v.base.doomed # {}
IsDecidedAnew(v) == v.base.tok # v.first
MayVanish(L, R, base) == \E r \in {L, R, base} : (r.stamp # 0 \/ r = base) /\ (Untouched(r) \/ r.gone)

\* ---- a driver
Off == [pc |-> "off", q |-> "", run |-> 0, ep |-> 0, plan |-> 0, heard |-> TRUE, parts |-> <<>>, skips |-> {},
        first |-> -1, m |-> None, of |-> None, ret |-> "", k |-> 0, place |-> 0, known |-> <<>>, ack |-> 0, base |-> Nothing,
        may |-> FALSE, rival |-> Nothing, claim |-> 0, todo |-> <<>>, verdict |-> "", why |-> "", since |-> 0]
Fail(v, why) == [v EXCEPT !.pc = "failed", !.why = why, !.m = None, !.of = None]
Asks(v, m)   == [v EXCEPT !.pc = "ask", !.m = m]
Again(v)     == [v EXCEPT !.pc = "read", !.m = None, !.of = None, !.ret = "", !.k = 0, !.base = Nothing, !.rival = Nothing,
                          !.claim = 0, !.todo = <<>>, !.verdict = "", !.may = FALSE]
Clean(v, name, r) == [v EXCEPT !.pc = "clean", !.m = Write("", name, r, r), !.of = None]
Flat(as)     == LET F[i \in 0..Len(as)] ==
                      IF i = 0 THEN <<>> ELSE F[i - 1] \o [k \in 1..att[as[i]].size |-> <<as[i], k>>]
                IN F[Len(as)]
Over(v, name, now) ==  \* an epoch is finished, by whomever
  CASE v.ret = "recover"    -> Off
    [] v.ret = "neighbours" -> [Again(v) EXCEPT !.pc = "neighbours"]
    [] v.ret = "stand"      -> Again(v)
    [] OTHER -> IF now.q = v.q /\ now.epoch < v.ep THEN Fail(v, "DecisionLost") ELSE Clean(v, name, now)
Finish(v, name, r, ret) ==  \* roll forward, from the manifest alone
  LET u == [v EXCEPT !.ret = ret, !.k = 1, !.place = 1, !.of = None]
      m  == [Write("finish", name, r, Closed(r)) EXCEPT !.need = Len(r.man), !.new.man = r.man]
  IN IF ~r.open THEN Over(u, name, r)
     ELSE [u EXCEPT !.m = m, !.pc = IF r.man = <<>> THEN IF Profile = "converging" THEN "mark" ELSE "ask"
                                    ELSE IF ByPlace THEN "fetch" ELSE "apply"]
Decision(v) ==
  [Write("decide", Name(v.q), v.base,
    [v.base EXCEPT !.at = TRUE, !.ever = TRUE, !.open = TRUE, !.epoch = v.ep, !.man = Flat(v.parts), !.plan = v.plan,
       !.run = v.run, !.past = @ \cup ({v.base.run} \ {0, v.run}), !.replayed = {x \in @ : x[1] # v.run},
       !.doomed = {a \in @ : att[a].q # v.q}]) EXCEPT !.as = v.parts]
Replay(v) == Write("replay", Name(v.q), v.base, IF v.run = v.base.run THEN [v.base EXCEPT !.at = TRUE] ELSE
  [v.base EXCEPT !.at = TRUE, !.replayed = {x \in @ : x[1] # v.run} \cup {<<v.run, v.base.epoch>>}])
Take(v) ==
  IF IsDoomed(v) THEN Fail(v, "Missing")
  ELSE IF v.verdict = "replay" THEN Asks(v, Replay(v))
  ELSE IF ~ByPlace THEN Asks(v, Decision(v))
  ELSE [Asks(v, [kind |-> "draw", name |-> Name(v.q)]) EXCEPT !.of = Decision(v)]
Establish(v) ==  \* what is left to do of it: its own ledger, the rival's, the claim
  IF v.todo = <<>> THEN Take(v) ELSE
  CASE Head(v.todo) = "own"    -> Asks(v, Write("own", Name(v.q), v.base, v.base))
    [] Head(v.todo) = "retire" -> Asks(v, Write("retire", v.rival.q, v.rival,
                                                [v.rival EXCEPT !.retired = @ \cup {v.rival.q}]))
    [] Head(v.todo) = "claim"  -> Asks(v, [Write("claim", Name(v.q), Nothing, Nothing) EXCEPT !.over = v.claim])
Did(v) == Establish([v EXCEPT !.todo = Tail(@)])
Stand(u, L, R, claim) ==  \* what it makes of what it has read; claim is -1 where the path is its own
  LET base == Base(u.q, L, R)
      v == [u EXCEPT !.may = MayVanish(L, R, base), !.rival = R, !.claim = claim, !.base = base, !.verdict = Judge(u, base),
                     !.first = IF @ = -1 THEN base.tok ELSE @,
                     !.todo = (IF base = L /\ (R.stamp = 0 \/ L.epoch >= 0) THEN <<>> ELSE <<"own">>) \o
                              (IF R.stamp = 0 THEN <<>> ELSE <<"retire">>) \o (IF claim = -1 THEN <<>> ELSE <<"claim">>)]
  IN IF Refusal(u.q, L, R) # "" THEN Fail(u, Refusal(u.q, L, R))
     ELSE IF L.open THEN Finish(u, Name(u.q), L, "stand")
     ELSE IF R.open THEN Finish(u, R.q, R, "stand")
     ELSE IF IsDecidedAnew(v) THEN Fail(v, "Concurrent")
     ELSE IF v.verdict \notin {"next", "replay"} THEN Fail(v, v.verdict)
     ELSE IF IsStaleSkip(v) THEN Fail(v, "StaleSkip")
     ELSE Establish(v)

\* ---- answers
After(v, m, now) ==  \* a ledger was to be written, and this is there
  IF now.stamp = 0 THEN IF m.kind # "finish" /\ v.may THEN Again(v)
                        ELSE IF v.ret = "neighbours" THEN Over(v, m.name, now) ELSE Fail(v, "DecisionLost") ELSE
  CASE m.kind = "finish" -> IF now.q = m.new.q /\ now.epoch = m.new.epoch THEN Finish(v, m.name, now, v.ret)
                            ELSE Over(v, m.name, now)
    [] m.kind = "decide" -> IF now.tok = m.new.tok THEN Finish(v, m.name, now, "commit") ELSE Again(v)
    [] m.kind \in {"own", "retire", "replay"} /\ now.stamp # m.new.stamp -> Again(v)
    [] m.kind = "own"    -> Did([v EXCEPT !.base = now])
    [] m.kind = "retire" -> [Clean(v, m.name, now) EXCEPT !.ret = "retired"]
    [] m.kind = "replay" -> [Clean(v, m.name, now) EXCEPT !.ret = "commit"]
Behind == CASE Profile = "converging" -> "mark" [] Profile = "lanes" -> "learn" [] OTHER -> "ask"
Step(v) ==  \* to the next place, the next chunk, or to what comes behind the last
  IF ByPlace /\ v.place + 1 \in Places THEN [v EXCEPT !.place = @ + 1]
  ELSE IF v.k < Len(v.m.new.man) THEN [v EXCEPT !.k = @ + 1, !.place = 1, !.pc = IF ByPlace THEN "fetch" ELSE "apply"]
  ELSE [v EXCEPT !.pc = Behind]
Sends(v) ==  \* the request that a driver is about to send
  LET m == v.m  part == [kind |-> v.pc, name |-> m.name, tok |-> m.new.tok] IN
  CASE v.pc = "ask"   -> Stamped(m)
    [] v.pc = "mark"  -> part @@ [k |-> Len(m.new.man), known |-> IF Profile = "lanes" THEN v.known ELSE S.known]
    [] v.pc = "apply" -> part @@ [k |-> v.k, c |-> m.new.man[v.k]]
    [] v.pc = "row"   -> part @@ [k |-> v.k, c |-> m.new.man[v.k], place |-> v.place, fence |-> m.new.fence,
                                  before |-> v.known[v.place]]
Applied(v, m, now) ==
  IF now.led[m.name].tok # m.tok THEN [v EXCEPT !.pc = "ask"]
  ELSE IF now.app[m.name] >= m.k THEN Step(v)
  ELSE IF ~IsDue(m) THEN [v EXCEPT !.k = 1]
  ELSE Fail(v, IF m.c \in S.log THEN "Refused" ELSE "Lost")
Rowed(v, m, p) ==  \* p: what its place has seen by now
  IF Profile = "converging" \/ (p.fence = m.fence /\ m.k \in p.ks)
  THEN IF Fits({m.c[1]}) \/ ~Admits(S.at[m.place], m) THEN Step(v) ELSE Fail(v, "Refused")
  ELSE IF ~Fits({m.c[1]}) THEN Fail(v, "Refused")
  ELSE IF ~IsDecision(m) THEN [v EXCEPT !.pc = "ask"]
  ELSE IF p.fence = m.fence \/ (m.k > 1 /\ p.fence < m.fence) THEN [v EXCEPT !.k = 1, !.place = 1, !.pc = "fetch"]
  ELSE Fail(v, "Lost")
Heard(v, m, now) ==  \* its request is answered; `now` is the store since
  LET r == now.led[m.name] IN
  CASE m.kind = "decide" /\ IsThere(m) /\ ~Does(m) -> Fail(v, IF IsWhole(m.new.man) THEN "Refused" ELSE "Missing")
    [] m.kind = "decide" -> After([v EXCEPT !.ack = IF Does(m) THEN m.new.tok ELSE @], m, r)
    [] m.kind = "fence"  -> After(v, v.of, r)
    [] m.kind \in Writes -> After(v, m, r)
    [] m.kind = "claim"  -> IF now.claim.stamp = m.new.stamp THEN Did(v) ELSE Again(v)
    [] m.kind = "draw"   -> [v EXCEPT !.pc = IF Profile = "lanes" THEN "ask" ELSE "look", !.of = None,
                                      !.m = [v.of EXCEPT !.new.fence = now.fence]]
    [] m.kind = "apply"  -> Applied(v, m, now)
    [] m.kind = "row"    -> Rowed(v, m, now.at[m.place])
    [] m.kind = "mark"   -> [v EXCEPT !.pc = "ask"]
    [] m.kind = "cut"    -> [v EXCEPT !.pc = "note"]
Unheard(v, m) ==  \* what became of a write is learned by moving the revision, it is not taken for failed or done
  LET same == IF v.pc = "ask" THEN [v EXCEPT !.m = m] ELSE v IN
  IF m.kind \notin Writes THEN {same}
  ELSE {[v EXCEPT !.pc = "fence", !.m = IF m.kind = "fence" THEN v.of ELSE m, !.of = None]}
       \cup IF Profile = "converging" THEN {same} ELSE {}  \* whose client sends again by itself
Moved(v, m, r) == [Asks(v, Write("fence", m.name, r, IF r.stamp = 0 THEN [Nothing EXCEPT !.q = v.q] ELSE r)) EXCEPT !.of = m]
=============================================================================
