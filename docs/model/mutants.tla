------------------------------- MODULE mutants -------------------------------
(* Faults, each in place of a definition of the specification; docs/model/mutants.md names the definition.   *)
EXTENDS promises
Yes1(x)       == TRUE
Yes2(x, y)    == TRUE
No1(x)        == FALSE
No2(x, y)     == FALSE
No3(x, y, z)  == FALSE

\* ---- records: what a write compares
ByToken(m)     == S.led[m.name].stamp = m.over \/ ("new" \in DOMAIN m /\ S.led[m.name].tok # 0 /\ S.led[m.name].tok = m.new.tok)
UnlessItCuts(m)     == m.kind = "cut" \/ S.led[m.name].stamp = m.over
UnlessItDecides(m)  == m.kind = "decide" \/ S.led[m.name].stamp = m.over

\* ---- the log
StagesByPartition(a, arrives, late) ==
  LET m == [kind |-> "stage", c |-> <<a, att[a].done + 1>>] IN
  /\ att[a].st = "runs" /\ att[a].done < att[a].size
  /\ World([Carried(m, arrives, late, arrives) EXCEPT !.att[a].done = IF arrives THEN @ + 1 ELSE @,
              !.S.log = {c \in @ : c[1] = a \/ att[c[1]].p # att[a].p \/ att[c[1]].e # att[a].e}])
LooksFirst(v) ==  \* then decides, even if chunks vanish meanwhile
  IF IsDoomed(v) THEN Fail(v, "Missing") ELSE IF v.verdict = "replay" THEN Asks(v, Replay(v))
  ELSE [Asks(v, [kind |-> "draw", name |-> Name(v.q)]) EXCEPT !.of = Decision(v)]
LookedApart(v) == IF Range(v.m.new.man) \subseteq S.log THEN [v EXCEPT !.pc = "ask"] ELSE Fail(v, "Missing")
DropsBefore(m) ==  \* with any record in the store
  IF m.kind # "doom" \/ m.drop = {} THEN {} ELSE {Drop(m.name, -1, m.drop)}
DropsAlike(name, over, as) ==
  [kind |-> "drop", name |-> name, over |-> over, drop |->
    {a \in DOMAIN att : \E b \in as : att[a].q = att[b].q /\ att[a].e = att[b].e /\ att[a].p = att[b].p}]
Losers(v) == LET all == [x \in DOMAIN att |-> x]  wins == Range(v.parts) IN
  v.parts \o SelectSeq(all, LAMBDA x : x \notin wins /\ att[x].q = v.q /\ att[x].e = v.ep /\ att[x].done = att[x].size)
AsItIs(v) ==  \* Decision
  [Write("decide", Name(v.q), v.base,
    [v.base EXCEPT !.at = TRUE, !.ever = TRUE, !.open = TRUE, !.epoch = v.ep, !.man = Flat(v.parts),
       !.plan = PlanOf(v, v.ep), !.run = v.run, !.past = @ \cup ({v.base.run} \ {0, v.run}),
       !.replayed = {x \in @ : x[1] # v.run}, !.doomed = {a \in @ : att[a].q # v.q}]) EXCEPT !.as = v.parts]
DecidesLosers(v) == [AsItIs(v) EXCEPT !.new.man = Flat(Losers(v))]

\* ---- what takes effect
RowsAlone(m) ==  \* publish dies between rows and ledger
  IF Publishes(m) THEN [S EXCEPT !.at = [l \in Places |-> [@[l] EXCEPT !.rows = @ \o m.new.man]]]
  ELSE [S EXCEPT !.led[m.name] = IF m.kind = "finish" THEN Closed(m.new) ELSE m.new]
LedgerAlone(m) ==
  LET new == IF Publishes(m) \/ m.kind = "finish" THEN Closed(m.new) ELSE m.new
      had == [q |-> new.q, e |-> new.epoch, run |-> new.run, tok |-> new.tok, as |-> m.as, whole |-> TRUE] IN
  [S EXCEPT !.led[m.name] = new, !.hist = IF m.kind = "decide" THEN Append(@, had) ELSE @]
Publishing(m, man) ==  \* these chunks take effect, no matter what else was decided
  [LedgerAlone(m) EXCEPT !.at = IF Publishes(m) THEN [l \in Places |-> [@[l] EXCEPT !.rows = @ \o man]] ELSE @]
PublishesAPage(m)   == Publishing(m, SubSeq(m.new.man, 1, 1))
PublishesTheRest(m) == Publishing(m, SelectSeq(m.new.man, LAMBDA c : c \in S.log))
Unmarked(m)     == [S EXCEPT !.at[1].rows = Append(@, m.c)]  \* no mark, and the chunk stays
MarkedLast(m)   == [S EXCEPT !.at[1].rows = Append(@, m.c),
                             !.led[m.name].app = IF m.k = Len(S.led[m.name].man) THEN m.k ELSE @]
AnyDue(m)       == S.led[m.name].app <= m.k - 1
Applies(m)      == [S EXCEPT !.at[1].rows = Append(@, m.c), !.log = @ \ {m.c}, !.led[m.name].app = m.k]
Skips(m)        == [S EXCEPT !.log = @ \ {m.c}, !.led[m.name].app = m.k]
PassesOver(m)   == IF m.c \in S.log THEN Applies(m) ELSE Skips(m)
GoneOrNot(p, m) == IsDecision(m) /\ IsDue(m)
LeavesOut(m)    == IF m.c[1] \in w.bad THEN Skips(m) ELSE Applies(m)
AsksOnce(p, m)  == m.c \in S.log /\ (m.k = 1 => IsDecision(m) /\ IsDue(m))
Counts(m)       == [S EXCEPT !.at[1].rows = Append(@, m.c), !.led[m.name].app = IF @ > m.k THEN @ ELSE m.k]
FirstChunkOnly(m) == ("k" \in DOMAIN m /\ m.k > 1) \/ S.led[m.name].tok = m.tok
Early(v)        == [v EXCEPT !.k = 1, !.place = 1, !.pc = "ask"]

\* ---- rows that converge, lanes
OncePerFence(p, m) == m.fence > p.fence \/ (m.fence = p.fence /\ p.ks = {})
AnyFence(p, m)     == m.fence # p.fence \/ m.k \notin p.ks
LastOnly(m) == LET p == S.at[m.place] IN
  [S EXCEPT !.at[m.place] = [fence |-> m.fence, rows |-> Append(p.rows, m.c), ks |-> {m.k}]]
DropsAsItGoes(m) == LET p == S.at[m.place]  ks == {m.k} \cup IF m.fence = p.fence THEN p.ks ELSE {} IN
  [S EXCEPT !.at[m.place] = [fence |-> m.fence, rows |-> Append(p.rows, m.c), ks |-> ks], !.log = @ \ {m.c}]
FencedByEpoch(v) ==
  LET m == v.m  part == [kind |-> v.pc, name |-> m.name, tok |-> m.new.tok] IN
  CASE v.pc = "ask"  -> Stamped(m)
    [] v.pc = "mark" -> part @@ [k |-> Len(m.new.man), known |-> v.known]
    [] v.pc = "row"  -> part @@ [k |-> v.k, c |-> m.new.man[v.k], place |-> v.place, fence |-> m.new.epoch + 1,
                                 before |-> v.known[v.place]]
Unacknowledged(v) ==
  LET m == v.m IN
  IF m.new.man[v.k] \in S.log THEN [v EXCEPT !.pc = "row", !.known = IF v.k = 1 THEN S.known ELSE @]
  ELSE IF S.led[m.name].tok # m.new.tok \/ S.led[m.name].app >= Len(m.new.man) THEN [v EXCEPT !.pc = "ask"] ELSE Fail(v, "Lost")
AnyLane(p, m) == (m.fence = p.fence /\ p.ks = 1..(m.k - 1)) \/ (m.fence > p.fence /\ m.k = 1)

\* ---- a commit
OnlyReads(v, m, r)    == After(v, m, r)
FailsUnheard(v, m)    == {Fail(v, "Unreachable")}
StartsOver(v, m)      == {IF m.kind \in Writes THEN Again(v, "read") ELSE v}
TakesForDone(v, m)    == {IF m.kind \in Writes \ {"fence"} THEN After([v EXCEPT !.ack = m.new.tok], m, m.new) ELSE v}
GivesUp(v, name, r, ret) == LET u == [Again(v, "") EXCEPT !.ret = ret] IN
  IF ~r.open THEN Over(u, name, r)
  ELSE IF ret = "commit"
  THEN LET m == [Write("finish", name, r, Closed(r)) EXCEPT !.need = Len(r.man), !.new.man = r.man] IN First([u EXCEPT !.m = m])
  ELSE Asks(u, Write("finish", name, r, [Closed(r) EXCEPT !.epoch = @ - 1, !.tok = 0]))
AnyEpochOf(r, q, e)   == r.epoch >= e
ForgetsRuns(v)        == [AsItIs(v) EXCEPT !.new.past = {}]
ForgetsReplays(v)     == Write("replay", Name(v.q), v.base, [v.base EXCEPT !.at = TRUE])
DecidesAgain(v, L)    == IF IsSuperseded(v, L) THEN "Concurrent" ELSE IF IsBehind(v, L) THEN "Behind" ELSE "next"
WantsNoGap(v, L)      == IF IsSinkBehind(v, L) THEN "SinkBehind" ELSE IF v.ep > L.epoch THEN "next" ELSE "replay"
GoesBack(v, L)        == IF v.ep = L.epoch THEN "replay" ELSE "next"
UnlessEmpty(v, L)     == L.epoch >= 0 /\ v.ep > L.epoch + 1
OnlyReplays(v)        == IF IsDoomed(v) THEN Fail(v, "Missing") ELSE IF v.verdict = "replay" THEN Is(v, "note")
                         ELSE Asks(v, Decision(v))
LeavesNeighbours(v, name, r, ret) ==
  LET m == [Write("finish", name, r, Closed(r)) EXCEPT !.need = Len(r.man), !.new.man = r.man]
      u == First([Again(v, "") EXCEPT !.ret = ret, !.m = m])
  IN IF ret = "neighbours" THEN Again(v, "read") ELSE IF ~r.open THEN Over(u, name, r) ELSE u

\* ---- identity
HasNoPast(r)          == r.epoch < 0 /\ r.retired = {}
NeverDecided(r)       == ~r.ever
InAnyLedger(r, q)     == q \in r.retired
EpochsFirst(q, L, R)  == IF L.stamp # 0 /\ L.epoch >= 0 THEN L ELSE [Nothing EXCEPT !.q = q]
BaseOf(q, L, R) ==  \* as Base
  LET own  == IF L.stamp = 0 THEN [Nothing EXCEPT !.q = q] ELSE IF L.q = q THEN L ELSE Succeeded(q, L)
      past == IF R.stamp = 0 \/ own.epoch >= 0 THEN {} ELSE R.retired \cup {R.q}
  IN [own EXCEPT !.retired = @ \cup past, !.heir = @ \/ (past # {} /\ ~Untouched(R))]
InheritsNothing(q, L, R) == LET all == BaseOf(q, L, R) IN
  [all EXCEPT !.retired = @ \ {q}, !.heir = L.stamp # 0 /\ (L.heir \/ (L.q # q /\ L.gone))]
OwnAlone(u, L, R, claim) ==  \* Stand, without the rival's open epoch
  LET base == Base(u.q, L, R)
      known == IF u.first = -1 THEN [u EXCEPT !.first = base.tok, !.saw = Len(S.hist)] ELSE u
      v == [known EXCEPT !.may = MayVanish(L, R, base), !.rival = R, !.claim = claim, !.base = base,
                         !.verdict = Judge(u, base), !.todo = ToDo(L, R, base, claim)]
  IN IF Retires(L, u.q) \/ Retires(R, u.q) THEN Fail(u, "Retired") ELSE IF IsReplaced(u.q, L, R) THEN Fail(u, "Replaced")
     ELSE IF L.open THEN Finish(u, Name(u.q), L, "read") ELSE IF IsDecidedAnew(v) THEN Fail(v, "Concurrent")
     ELSE IF MustConfirm(v) THEN Asks(v, Confirm(v, L))
     ELSE IF v.verdict \notin {"next", "replay"} THEN Fail(v, v.verdict)
     ELSE IF IsStaleSkip(v) THEN Fail(v, "StaleSkip") ELSE Establish(v)
Adopts(q, L)          == [L EXCEPT !.q = q]
RivalLives(L, R, base, claim) == (IF base = L /\ (R.stamp = 0 \/ L.epoch >= 0) THEN <<>> ELSE <<"own">>)
                                 \o IF claim = -1 THEN <<>> ELSE <<"claim">>
OwnClaim(L, R, base, claim)   ==
  (IF base = L /\ (R.stamp = 0 \/ L.epoch >= 0) THEN <<>> ELSE <<"own">>) \o (IF R.stamp = 0 THEN <<>> ELSE <<"retire">>)
  \o IF claim = -1 \/ S.claim.holder = Name(base.q) THEN <<>> ELSE <<"claim">>

\* ---- aborts
DropsUndoomed(x, as)  == Emits(Drop(x, -1, as \ Held(S.led[x])), "dooms")
DoomsAnyway(x, as)    == LET r == S.led[x] IN
  Emits([Write("doom", x, r, [r EXCEPT !.doomed = @ \cup as, !.q = IF @ = "" THEN x ELSE @]) EXCEPT !.drop = as], "dooms")
DropsDecided(x, as)   == Emits(Drop(x, -1, as), "dooms")
Undoes(x, as)         == LET r == S.led[x] IN
  r.epoch >= 0 /\ Emits(Write("doom", x, r, [Closed(r) EXCEPT !.epoch = @ - 1, !.tok = 0]), "dooms")
=============================================================================
