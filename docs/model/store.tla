-------------------------------- MODULE store --------------------------------
(* Ledgers, and what a store does with a request: `Do`, the same whether it comes at once, late or twice.      *)
(* Names are those of ledger.py and store.py. Guards have names, so that mutants.tla can leave each of them    *)
(* out. A chunk is <<attempt, seq>>, a place what all chunks have rows for: a target, a row, a lane.           *)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
  Profile,   \* of the store: "whole" epochs, "chunks", "converging" row by row, "lanes" of a cluster
  OneStep,   \* whether doom drops attempts in the step that writes the ledger
  SinkId,    \* whether the queries share one ledger
  Queries,   \* of one checkpoint path; each batch without a name is a query of its own
  Places

VARIABLES w,   \* the world: S the store, att attempts of tasks, bad those that the server refuses for now, ckpt
               \* Spark's checkpoints, told what Spark knows to be committed, sent requests that nobody waits for,
               \* past what the store may fall back to or show, n counters
          drv  \* drivers
S == w.S   att == w.att   ckpt == w.ckpt   n == w.n
ByPlace == Profile \in {"converging", "lanes"}

Range(s)   == {s[i] : i \in DOMAIN s}
Of(chunks) == {c[1] : c \in chunks}
Name(q)    == IF SinkId THEN "s" ELSE q
Names      == {Name(q) : q \in Queries}

\* ---- ledgers
Nothing == [stamp |-> 0, rev |-> 0, q |-> "", retired |-> {}, epoch |-> -1, tok |-> 0, man |-> <<>>, open |-> FALSE,
            run |-> 0, past |-> {}, replayed |-> {}, doomed |-> {}, plan |-> 0, at |-> FALSE, fence |-> 0,
            ever |-> FALSE, heir |-> FALSE, gone |-> FALSE]
Untouched(r)     == ~r.ever /\ ~r.heir
MayGo(r)         == Untouched(r) /\ ~r.gone
Retires(r, q)    == q \in r.retired /\ ~MayGo(r)
Decided(r, q, e) == r.q = q /\ r.epoch >= e
IsOver(r, a)     == Retires(r, att[a].q) \/ Decided(r, att[a].q, att[a].e)
Held(r)          == IF r.open THEN Of(Range(r.man)) ELSE {}
Closed(r)        == [r EXCEPT !.open = FALSE, !.man = <<>>]

\* ---- requests; a write of a ledger replaces what has the stamp `over`, if `need` chunks are applied
None == [kind |-> ""]
Write(kind, name, old, new) ==
  [kind |-> kind, name |-> name, over |-> old.stamp, need |-> 0, drop |-> {}, as |-> <<>>, claim |-> 0,
   new |-> [new EXCEPT !.rev = old.rev + 1, !.stamp = 0]]
Writes   == {"own", "retire", "replay", "decide", "finish", "doom", "fence"}
IsNew(m) == m.kind \in Writes \cup {"claim"} /\ m.new.stamp = 0
Stamped(m) == IF ~IsNew(m) THEN m  \* who sends again sends the same
              ELSE [m EXCEPT !.new.stamp = n.stamp + 1, !.new.tok = IF m.kind = "decide" THEN n.stamp + 1 ELSE @]

\* ---- guards of the store
IsThere(m)    == S.led[m.name].stamp = m.over
IsFree(m)     == S.claim.stamp = m.over
AllApplied(m) == S.app[m.name] >= m.need
IsWhole(man)  == Range(man) \subseteq S.log
IsDecision(m) == S.led[m.name].tok = m.tok
IsDue(m)      == S.app[m.name] = m.k - 1
Fits(as)      == as \cap w.bad = {}
Publishes(m)  == m.kind = "decide" /\ Profile = "whole"
Admits(p, m)  ==  \* a row has seen a fence and chunks of its decision; a lane must have seen them in order
  IF Profile = "converging" THEN m.fence > p.fence \/ (m.fence = p.fence /\ m.k \notin p.ks)
  ELSE (m.fence = p.fence /\ p.ks = 1..(m.k - 1)) \/ (m.fence > p.fence /\ m.k = 1 /\ m.before = <<p.fence, p.ks>>)
Does(m) ==  \* whether a request does anything
  CASE m.kind = "decide"              -> IsThere(m) /\ (Profile # "converging" => IsWhole(m.new.man))
                                         /\ (Publishes(m) => Fits(Range(m.as)))
    [] m.kind \in Writes \cup {"cut"} -> IsThere(m) /\ AllApplied(m)
    [] m.kind \in {"claim", "free"}   -> IsFree(m)
    [] m.kind = "drop"                -> m.over = -1 \/ Profile = "converging" \/ IsThere(m)
    [] m.kind = "apply"               -> IsDecision(m) /\ IsDue(m) /\ m.c \in S.log /\ Fits({m.c[1]})
    [] m.kind = "row"                 -> Admits(S.at[m.place], m) /\ Fits({m.c[1]})
    [] m.kind = "mark"                -> IsDecision(m)
    [] OTHER                          -> TRUE

Put(m) ==
  [S EXCEPT !.led[m.name] = IF Publishes(m) \/ m.kind = "finish" THEN Closed(m.new) ELSE m.new,
            !.app[m.name] = IF m.new.tok = S.led[m.name].tok THEN @ ELSE 0,
            !.log  = IF OneStep THEN {c \in @ : c[1] \notin m.drop} ELSE @,
            !.hist = IF m.kind # "decide" THEN @
                     ELSE Append(@, [q |-> m.new.q, e |-> m.new.epoch, tok |-> m.new.tok, as |-> m.as]),
            !.at   = [l \in Places |-> [@[l] EXCEPT !.rows = IF Publishes(m) THEN @ \o m.new.man ELSE @]]]
Do(m) ==
  IF ~Does(m) THEN S ELSE
  CASE m.kind \in Writes -> Put(m)
    [] m.kind = "cut"    -> [S EXCEPT !.led[m.name] = Nothing, !.app[m.name] = 0]
    [] m.kind = "claim"  -> [S EXCEPT !.claim = [holder |-> m.name, stamp |-> m.new.stamp]]
    [] m.kind = "free"   -> [S EXCEPT !.claim = [holder |-> "", stamp |-> 0]]
    [] m.kind = "stage"  -> [S EXCEPT !.log = @ \cup {m.c}]
    [] m.kind = "drop"   -> [S EXCEPT !.log = {c \in @ : c[1] \notin m.drop}]
    [] m.kind = "draw"   -> [S EXCEPT !.fence = @ + 1]
    [] m.kind = "apply"  -> [S EXCEPT !.at[1].rows = Append(@, m.c), !.log = @ \ {m.c}, !.app[m.name] = m.k]
    [] m.kind = "row"    -> [S EXCEPT !.at[m.place] = [fence |-> m.fence, rows |-> Append(@.rows, m.c),
                                                       ks |-> {m.k} \cup IF m.fence = @.fence THEN @.ks ELSE {}]]
    [] m.kind = "mark"   -> [S EXCEPT !.app[m.name] = m.k, !.known = m.known]
Then(m) ==  \* what is sent once it is done, by a process that may die in between
  IF ~Does(m) \/ m.kind \notin {"doom", "cut"} THEN {} ELSE
    (IF m.drop = {} \/ OneStep THEN {}
     ELSE {[kind |-> "drop", name |-> m.name, over |-> m.new.stamp, drop |-> m.drop]})
    \cup IF m.claim = 0 THEN {} ELSE {[kind |-> "free", name |-> m.name, over |-> m.claim]}
=============================================================================
