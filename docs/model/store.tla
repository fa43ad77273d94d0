-------------------------------- MODULE store --------------------------------
(* Ledgers, and the effect of a request on a store: `Do`, the same if it arrives immediately, late or twice. Names  *)
(* are those of ledger.py and store.py; guards have names, so that mutants.tla can omit each of them.               *)
EXTENDS Integers, Sequences, FiniteSets, TLC
CONSTANTS Profile,          \* of the store: "whole" epochs, "chunks", "converging" row by row, "lanes" of a cluster
          OneStep,          \* whether doom drops attempts in the step that writes the ledger
          SinkId, Queries,  \* whether these share a ledger; all have one checkpoint path; a batch is a separate query
          Places            \* the places of each chunk's rows: a target, rows of it, lanes; a chunk is <<attempt, seq>>
VARIABLES drv,  \* drivers
          w     \* S the store, att attempts, bad rejected ones, ckpt Spark's checkpoints, told the epochs that
                \* Spark counts as committed, sent abandoned requests, past states that may return, n counters
S == w.S   att == w.att   ckpt == w.ckpt   n == w.n
Range(s)   == {s[i] : i \in DOMAIN s}
Name(q)    == IF SinkId THEN "s" ELSE q   Names == {Name(q) : q \in Queries}
\* ---- ledgers; `app` counts the applied chunks of the decision, and moves no stamp
Nothing == [stamp |-> 0, q |-> "", retired |-> {}, epoch |-> -1, tok |-> 0, man |-> <<>>, open |-> FALSE,
            app |-> 0, run |-> 0, past |-> {}, replayed |-> {}, doomed |-> {}, plan |-> 0, at |-> FALSE, fence |-> 0,
            ever |-> FALSE, heir |-> FALSE, gone |-> FALSE]
Untouched(r)     == ~r.ever /\ ~r.heir          MayGo(r) == Untouched(r) /\ ~r.gone
Retires(r, q)    == q \in r.retired /\ ~MayGo(r)
Decided(r, q, e) == r.q = q /\ r.epoch >= e
Held(r)          == IF r.open THEN {c[1] : c \in Range(r.man)} ELSE {}
IsOver(r, a)     == (Retires(r, att[a].q) \/ Decided(r, att[a].q, att[a].e)) /\ a \notin Held(r)
Free             == [holder |-> "", stamp |-> 0]  \* a claim without a holder
Overtaken(x)     == \E i, j \in DOMAIN S.hist :  \* another sink has decided since
  S.hist[i].tok = S.led[x].tok /\ i < j /\ Name(S.hist[j].q) # x
Closed(r)        == [r EXCEPT !.open = FALSE, !.man = <<>>]
\* ---- requests; a write of a ledger replaces the one with stamp `over`, if `need` chunks are applied
Write(kind, name, old, new) ==
  [kind |-> kind, name |-> name, over |-> old.stamp, need |-> 0, drop |-> {}, as |-> <<>>,
   claim |-> 0, new |-> [new EXCEPT !.stamp = 0]]
Drop(name, over, as) == [kind |-> "drop", name |-> name, over |-> over, drop |-> as]
Writes     == {"own", "retire", "replay", "decide", "finish", "doom", "fence", "confirm"}
IsNew(m)   == m.kind \in Writes \cup {"claim"} /\ m.new.stamp = 0
Stamped(m) == IF ~IsNew(m) THEN m  \* a repeated request is the same
              ELSE [m EXCEPT !.new.stamp = n.stamp + 1, !.new.tok = IF m.kind = "decide" THEN n.stamp + 1 ELSE @]
\* ---- guards of the store
IsThere(m)    == S.led[m.name].stamp = m.over   IsFree(m) == S.claim.stamp = m.over
AllApplied(m) == S.led[m.name].app >= m.need      IsWhole(man) == Range(man) \subseteq S.log
IsDecision(m) == S.led[m.name].open /\ S.led[m.name].tok = m.tok    IsDue(m)  == S.led[m.name].app = m.k - 1
MayDrop(m)    == m.over = -1 \/ Profile = "converging" \/ IsThere(m)
Fits(as)      == as \cap w.bad = {}             Publishes(m) == m.kind = "decide" /\ Profile = "whole"
Admits(p, m)  ==  \* a row has seen a fence and chunks of its decision; a lane must have seen them in order
  CASE Profile = "converging" -> m.fence > p.fence \/ (m.fence = p.fence /\ m.k \notin p.ks)
    [] Profile = "lanes" -> \/ m.fence = p.fence /\ p.ks = 1..(m.k - 1)
                            \/ m.fence > p.fence /\ m.k = 1 /\ m.before = <<p.fence, p.ks>>
    [] Profile = "chunks" -> IsDecision(m) /\ IsDue(m) /\ m.c \in S.log
Does(m) ==  \* whether a request has an effect
  CASE m.kind = "decide" -> /\ IsThere(m) /\ (Profile = "converging" \/ IsWhole(m.new.man))
                            /\ Publishes(m) => Fits(Range(m.as))
    [] m.kind \in (Writes \ {"decide"}) \cup {"cut"} -> IsThere(m) /\ AllApplied(m)
    [] m.kind \in {"claim", "free"} -> IsFree(m)  [] m.kind \in {"stage", "draw"} -> TRUE
    [] m.kind = "drop" -> MayDrop(m)              [] m.kind = "mark" -> IsDecision(m)
    [] m.kind = "row"  -> Admits(S.at[m.place], m) /\ Fits({m.c[1]})
Put(m) == LET new == IF Publishes(m) \/ m.kind = "finish" THEN Closed(m.new) ELSE m.new
              had == [q |-> new.q, e |-> new.epoch, run |-> new.run, tok |-> new.tok, as |-> m.as,
              whole |-> Range(m.new.man) \subseteq S.log]  again == new.tok = S.led[m.name].tok IN
  [S EXCEPT !.led[m.name] = [new EXCEPT !.app = IF again THEN S.led[m.name].app ELSE 0],
            !.log  = IF OneStep THEN {c \in @ : c[1] \notin m.drop} ELSE @,
            !.hist = IF m.kind = "decide" /\ ~again THEN Append(@, had) ELSE @,
            !.at   = IF Publishes(m) THEN [l \in Places |-> [@[l] EXCEPT !.rows = @ \o m.new.man]] ELSE @]
Row(m) == LET p == S.at[m.place]  ks == {m.k} \cup IF m.fence = p.fence THEN p.ks ELSE {} IN
  IF Profile = "chunks" THEN [S EXCEPT !.at[1].rows = Append(@, m.c), !.log = @ \ {m.c}, !.led[m.name].app = m.k]
  ELSE [S EXCEPT !.at[m.place] = [fence |-> m.fence, rows |-> Append(p.rows, m.c), ks |-> ks]]
Do(m) ==
  IF ~Does(m) THEN S ELSE
  CASE m.kind \in Writes -> Put(m)
    [] m.kind = "cut"    -> [S EXCEPT !.led[m.name] = Nothing]
    [] m.kind = "claim"  -> [S EXCEPT !.claim = [holder |-> m.name, stamp |-> m.new.stamp]]
    [] m.kind = "free"   -> [S EXCEPT !.claim = Free]
    [] m.kind = "drop"   -> [S EXCEPT !.log = {c \in @ : c[1] \notin m.drop}]
    [] m.kind = "stage"  -> [S EXCEPT !.log = @ \cup {m.c}]  [] m.kind = "row" -> Row(m)
    [] m.kind = "draw"   -> [S EXCEPT !.fence = @ + 1]
    [] m.kind = "mark"   -> [S EXCEPT !.led[m.name].app = m.k, !.known = m.known]
Then(m) ==  \* the next request once it is done; its process may die in between
  LET does == m.kind \in {"doom", "cut"} /\ Does(m) IN
  (IF does /\ m.drop # {} /\ ~OneStep THEN {Drop(m.name, m.new.stamp, m.drop)} ELSE {})
  \cup IF does /\ m.claim # 0 THEN {[kind |-> "free", name |-> m.name, over |-> m.claim]} ELSE {}
=============================================================================
