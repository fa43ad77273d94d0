------------------------------- MODULE commit -------------------------------
(* A driver's commit (guards.py, commit.py, registers.py): its conclusions from what it reads, and its requests.  *)
(* `v` is its knowledge, L the ledger of its name, R a ledger of another name that holds its checkpoint path.     *)
EXTENDS store
CONSTANT Policy   \* on a new checkpoint: "fail", "continue" (b after a), "repeatable" (anyone)
CONSTANT Follows  \* which epochs may follow one: "next" (streams), "grows", "once" (batches)
Kind(q) == IF q = "p" THEN "once" ELSE Follows  \* a batch without a name beside them
\* ---- identity precedes any comparison of epochs
Allowed(q, old, samePath) == \/ Untouched(old) \/ old.gone \/ (Policy = "repeatable" /\ samePath)
                             \/ Policy = "continue" /\ q = "b" /\ old.q = "a"
IsReplaced(q, L, R) == (R.stamp # 0 /\ ~Allowed(q, R, TRUE)) \/ (L.stamp # 0 /\ L.q # q /\ ~Allowed(q, L, L.at))
Succeeded(q, L) == [L EXCEPT !.q = q, !.retired = @ \cup {L.q}, !.epoch = -1, !.tok = 0, !.plan = 0,
                             !.replayed = {}, !.heir = @ \/ L.gone, !.gone = FALSE]
Base(q, L, R) ==
  LET own  == IF L.stamp = 0 THEN [Nothing EXCEPT !.q = q] ELSE IF L.q = q THEN L ELSE Succeeded(q, L)
      past == IF R.stamp = 0 \/ own.epoch >= 0 THEN {} ELSE R.retired \cup {R.q}
  IN [own EXCEPT !.retired = (@ \cup past) \ {q}, !.heir = @ \/ (past # {} /\ ~Untouched(R))]
\* ---- epochs of one query
PlanOf(v, e)         == ckpt[v.q].plan[e]
IsSuperseded(v, L)   == v.run \in L.past
HasReplayed(v, L)    == v.ep = L.epoch /\ \E x \in L.replayed : x[1] = v.run /\ x[2] < v.ep
IsBehind(v, L)       == v.ep < L.epoch
IsSinkBehind(v, L)   == v.ep > L.epoch + 1
IsWrittenTwice(v, L) == v.run = L.run \/ <<v.run, v.ep>> \in L.replayed
HasDiverged(v, L)    == L.epoch >= 0 /\ L.epoch \in {v.ep - 1, v.ep} /\ PlanOf(v, L.epoch) \notin {0, L.plan}
Judge(v, L) ==
  IF IsSuperseded(v, L) \/ HasReplayed(v, L) THEN "Concurrent" ELSE IF IsBehind(v, L) THEN "Behind"
  ELSE IF Kind(v.q) # "next" /\ v.ep > L.epoch THEN "next" ELSE IF IsSinkBehind(v, L) THEN "SinkBehind"
  ELSE IF HasDiverged(v, L) THEN "Diverged" ELSE IF v.ep > L.epoch THEN "next"
  ELSE IF Kind(v.q) = "grows" /\ v.first = -1 /\ IsWrittenTwice(v, L) THEN "WrittenTwice" ELSE "replay"
IsStaleSkip(v)   == \E tok \in v.skips : ~(v.verdict = "replay" /\ tok = v.base.tok)
IsDoomed(v)      == Range(v.parts) \cap v.base.doomed # {}
IsDecidedAnew(v) == v.base.tok # v.first
MayVanish(L, R, base) == \E r \in {L, R, base} : (r.stamp # 0 \/ r = base) /\ (Untouched(r) \/ r.gone)
\* ---- a driver
None == [kind |-> ""]   Unknown == [l \in Places |-> <<0, {}>>]
Off == [pc |-> "off", q |-> "", run |-> 0, ep |-> 0, from |-> 0, parts |-> <<>>, skips |-> {}, first |-> -1, since |-> 0,
        saw |-> 0, ack |-> 0, m |-> None, of |-> None, ret |-> "", k |-> 0, place |-> 0, known |-> Unknown,
        base |-> Nothing, may |-> FALSE, rival |-> Nothing, claim |-> 0, todo |-> <<>>, verdict |-> "", why |-> ""]
Fail(v, why) == [Off EXCEPT !.pc = "failed", !.why = why, !.ret = v.ret]
Asks(v, m)   == [v EXCEPT !.pc = "ask", !.m = m]
Is(v, pc)    == [Off EXCEPT !.pc = pc, !.q = v.q, !.run = v.run, !.ep = v.ep, !.from = v.from, !.since = v.since]
Again(v, pc) == [Is(v, pc) EXCEPT !.parts = v.parts, !.skips = v.skips, !.first = v.first, !.saw = v.saw, !.ack = v.ack]
Done(v, name, r) ==  \* a batch without a name removes its ledger, unless an older one waits
  IF Kind(v.q) = "once" THEN [Is(v, "alone") EXCEPT !.m = Write("cut", name, r, Nothing)] ELSE [Is(v, "note") EXCEPT !.saw = v.saw]
Over(v, name, now) ==  \* an epoch is finished, by any process
  CASE v.ret = "recover" -> Off  [] v.ret \in {"neighbours", "read"} -> Again(v, v.ret)
    [] v.ret = "commit"      -> IF now.q = v.q /\ now.epoch < v.ep THEN Fail(v, "DecisionLost") ELSE Done(v, name, now)
First(v) == [v EXCEPT !.k = 1, !.place = 1, !.pc = IF Profile \in {"converging", "lanes"} THEN "fetch" ELSE "row"]
Finish(v, name, r, ret) ==  \* roll forward, from the manifest alone
  LET m == [Write("finish", name, r, Closed(r)) EXCEPT !.need = Len(r.man), !.new.man = r.man]
      u == First([Again(v, "") EXCEPT !.ret = ret, !.m = m])
  IN IF ~r.open THEN Over(u, name, r)
     ELSE IF r.man = <<>> THEN [u EXCEPT !.pc = IF Profile = "converging" THEN "mark" ELSE "ask"] ELSE u
Flat(as) == LET F[i \in 0..Len(as)] == IF i = 0 THEN <<>> ELSE F[i - 1] \o [k \in 1..att[as[i]].size |-> <<as[i], k>>]
            IN F[Len(as)]
Decision(v) ==
  [Write("decide", Name(v.q), v.base,
    [v.base EXCEPT !.at = TRUE, !.ever = TRUE, !.open = TRUE, !.epoch = v.ep, !.man = Flat(v.parts),
       !.plan = PlanOf(v, v.ep), !.run = v.run, !.past = @ \cup ({v.base.run} \ {0, v.run}),
       !.replayed = {x \in @ : x[1] # v.run}, !.doomed = {a \in @ : att[a].q # v.q}]) EXCEPT !.as = v.parts]
Replay(v) == Write("replay", Name(v.q), v.base, [v.base EXCEPT !.at = TRUE,
  !.replayed = IF v.run = v.base.run THEN @ ELSE {x \in @ : x[1] # v.run} \cup {<<v.run, v.base.epoch>>}])
Take(v) ==
  IF IsDoomed(v) THEN Fail(v, "Missing") ELSE IF v.verdict = "replay" THEN Asks(v, Replay(v))
  ELSE IF Profile \in {"whole", "chunks"} THEN Asks(v, Decision(v))
  ELSE [Asks(v, [kind |-> "draw", name |-> Name(v.q)]) EXCEPT !.of = Decision(v)]
Establish(v) ==  \* the writes that remain: its own ledger, the rival's, the claim
  IF v.todo = <<>> THEN Take(v) ELSE LET R == v.rival IN Asks(v,
  CASE Head(v.todo) = "own"    -> Write("own", Name(v.q), v.base, v.base)
    [] Head(v.todo) = "retire" -> Write("retire", R.q, R, [R EXCEPT !.retired = @ \cup {R.q}])
    [] Head(v.todo) = "claim"  -> [Write("claim", Name(v.q), Nothing, Nothing) EXCEPT !.over = v.claim])
MustConfirm(v) == v.verdict = "SinkBehind"  \* a loss is an error once a write has replaced what was read: a node that lags answers reads, too
Confirm(v, L) ==
  Write("confirm", Name(v.q), L, IF L.stamp = 0 THEN [Nothing EXCEPT !.q = v.q] ELSE L)
Did(v) == Establish([v EXCEPT !.todo = Tail(@)])
ToDo(L, R, base, claim) == (IF base = L /\ (R.stamp = 0 \/ L.epoch >= 0) THEN <<>> ELSE <<"own">>)
  \o (IF R.stamp = 0 THEN <<>> ELSE <<"retire">>) \o (IF claim = -1 THEN <<>> ELSE <<"claim">>)
Stand(u, L, R, claim) ==  \* its conclusion from what it has read; claim is -1 if it holds the path
  LET base == Base(u.q, L, R)
      known == IF u.first = -1 THEN [u EXCEPT !.first = base.tok, !.saw = Len(S.hist)] ELSE u
      v == [known EXCEPT !.may = MayVanish(L, R, base), !.rival = R, !.claim = claim, !.base = base,
                         !.verdict = Judge(u, base), !.todo = ToDo(L, R, base, claim)]
  IN IF Retires(L, u.q) \/ Retires(R, u.q) THEN Fail(u, "Retired") ELSE IF IsReplaced(u.q, L, R) THEN Fail(u, "Replaced")
     ELSE IF L.open /\ Kind(u.q) # "next" /\ Overtaken(Name(u.q)) THEN Fail(u, "Overtaken")
     ELSE IF L.open THEN Finish(u, Name(u.q), L, "read") ELSE IF R.open THEN Finish(u, R.q, R, "read")
     ELSE IF IsDecidedAnew(v) THEN Fail(v, "Concurrent")
     ELSE IF MustConfirm(v) THEN Asks(v, Confirm(v, L)) ELSE IF v.verdict \notin {"next", "replay"} THEN Fail(v, v.verdict)
     ELSE IF IsStaleSkip(v) THEN Fail(v, "StaleSkip") ELSE Establish(v)
\* ---- replies
After(v, m, now) ==  \* the reply to a write of a ledger: the store now has this one
  IF m.kind = "confirm" THEN IF now.stamp = m.new.stamp THEN Fail(v, "SinkBehind") ELSE Again([v EXCEPT !.first = -1], "read")
  ELSE IF now.stamp = 0 /\ m.kind # "finish" /\ v.may THEN Again(v, "read")
  ELSE IF now.stamp = 0 THEN IF v.ret = "neighbours" \/ (v.ret = "recover" /\ Kind(v.q) = "once") THEN Over(v, m.name, now)
                              ELSE Fail(v, "DecisionLost")
  ELSE IF m.kind = "finish" THEN IF now.q = m.new.q /\ now.epoch = m.new.epoch THEN Finish(v, m.name, now, v.ret)
                                 ELSE Over(v, m.name, now)
  ELSE IF m.kind = "decide" /\ now.tok = m.new.tok THEN Finish(v, m.name, now, "commit")
  ELSE IF m.kind = "decide" \/ now.stamp # m.new.stamp THEN Again(v, "read")
  ELSE CASE m.kind = "own" -> Did([v EXCEPT !.base = now]) [] m.kind = "retire" -> Did(v)
         [] m.kind = "replay" -> Done(v, m.name, now)
Step(v) ==  \* to the next place, the next chunk, or the step after the last
  IF v.place + 1 \in Places THEN [v EXCEPT !.place = @ + 1]
  ELSE IF v.k < Len(v.m.new.man) THEN [First(v) EXCEPT !.k = v.k + 1]
  ELSE [v EXCEPT !.pc = CASE Profile = "converging" -> "mark" [] Profile = "lanes" -> "learn" [] OTHER -> "ask"]
Sends(v) ==  \* the request that a driver is about to send
  LET m == v.m  part == [kind |-> v.pc, name |-> m.name, tok |-> m.new.tok] IN
  CASE v.pc = "ask"  -> Stamped(m)
    [] v.pc = "mark" -> part @@ [k |-> Len(m.new.man), known |-> v.known]
    [] v.pc = "row"  -> part @@ [k |-> v.k, c |-> m.new.man[v.k], place |-> v.place, fence |-> m.new.fence,
                                 before |-> v.known[v.place]]
Has(m, r, p) ==  \* whether a chunk has already taken effect: r and p are the progress of ledger and place
  CASE Profile = "chunks" -> r.open /\ r.tok = m.tok /\ r.app >= m.k [] Profile = "converging" -> ~Admits(S.at[m.place], m)
    [] Profile = "lanes"  -> p.fence = m.fence /\ m.k \in p.ks
Rowed(v, m, r, p) ==
  IF Does(m) \/ Has(m, r, p) THEN Step(v)
  ELSE IF Admits(S.at[m.place], m) THEN Fail(v, "Refused")
  ELSE IF ~IsDecision(m) THEN [v EXCEPT !.pc = "ask"]
  ELSE IF IF Profile = "chunks" THEN ~IsDue(m) ELSE p.fence = m.fence \/ (m.k > 1 /\ p.fence < m.fence) THEN First(v)
  ELSE Fail(v, "Lost")
Heard(v, m, now) ==  \* the reply to its request arrives; `now` is the current store
  LET r == now.led[m.name] IN
  CASE m.kind = "decide" -> IF IsThere(m) /\ ~Does(m) THEN Fail(v, IF IsWhole(m.new.man) THEN "Refused" ELSE "Missing")
                            ELSE After([v EXCEPT !.ack = IF Does(m) THEN m.new.tok ELSE @], m, r)
    [] m.kind = "fence"  -> After(v, v.of, r)
    [] m.kind \in Writes \ {"decide", "fence"} -> After(v, m, r)
    [] m.kind = "claim"  -> IF now.claim.stamp = m.new.stamp THEN Did(v) ELSE Again(v, "read")
    [] m.kind = "draw"   -> [v EXCEPT !.pc = IF Profile = "lanes" THEN "ask" ELSE "look", !.of = None,
                                      !.m = [v.of EXCEPT !.new.fence = now.fence]]
    [] m.kind = "row"    -> Rowed(v, m, r, now.at[m.place])
    [] m.kind = "mark"   -> [v EXCEPT !.pc = "ask"]  [] m.kind = "cut" -> Is(v, "note")
Unheard(v, m) ==  \* a write is neither failed nor done: the driver moves the revision, or the client repeats it
  (IF m.kind \in Writes THEN {[v EXCEPT !.pc = "fence", !.m = IF m.kind = "fence" THEN v.of ELSE m, !.of = None]}
   ELSE IF m.kind = "cut" THEN {Is(v, "note")} ELSE {})  \* gc removes what stays
  \cup IF m.kind \in Writes \cup {"cut"} /\ Profile # "converging" THEN {} ELSE {IF v.pc = "ask" THEN [v EXCEPT !.m = m] ELSE v}
Moved(v, m, r) ==
  [Asks(v, Write("fence", m.name, r, IF r.stamp = 0 THEN [Nothing EXCEPT !.q = v.q] ELSE r)) EXCEPT !.of = m]
=============================================================================
