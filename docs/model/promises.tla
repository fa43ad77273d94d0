------------------------------ MODULE promises ------------------------------
(* The promises of the protocol: invariants, and that a query ends its epochs. docs/protocol.md names the rules of  *)
(* docs/spec.md that they represent.                                                                                *)
EXTENDS sparkonce

H == S.hist  \* the decisions, in their order
Streams(is)   == \A i \in is : Kind(H[i].q) = "next"
Times(c, l)   == Cardinality({i \in DOMAIN S.at[l].rows : S.at[l].rows[i] = c})
Took(h)       == \A c \in Range(Flat(h.as)), l \in Places : Times(c, l) = 1
Once          == \A l \in Places : \A c \in Range(S.at[l].rows) : Times(c, l) = 1
OnlyDecided   == \A l \in Places : \A c \in Range(S.at[l].rows) : \E h \in Range(H) : c[1] \in Range(h.as)
EpochsInOrder == \A i \in DOMAIN H : LET before == {j \in 1..(i - 1) : H[j].q = H[i].q} IN
  /\ \A j \in before : H[j].e < H[i].e /\ \A k \in j..i : Streams({k, i}) => H[k].q = H[i].q  \* no query returns
  /\ Streams({i}) => H[i].e = Cardinality(before)
Owners        == \A i \in 2..Len(H) : Streams({i - 1, i}) /\ n.commands = 0 /\ H[i].q # H[i - 1].q =>  \* allowed by an option
  Policy = "repeatable" \/ (Policy = "continue" /\ H[i].q = "b" /\ H[i - 1].q = "a")
OneDriver     == \A t \in w.told : n.losses = 0 =>  \* a run replays the epoch found at its start, and decides the rest
  \E i \in DOMAIN H : H[i].q = t.q /\ H[i].e = t.e /\ (H[i].run = t.run \/ i <= t.saw)
RowsInOrder   == \A l \in Places : \A i, j \in DOMAIN S.at[l].rows : \A x, y \in DOMAIN H :
  (i < j /\ S.at[l].rows[i][1] \in Range(H[x].as) /\ S.at[l].rows[j][1] \in Range(H[y].as)) => x <= y
AllOfIt       == \A h \in Range(H) : Took(h) \/ \E x \in Names : S.led[x].open /\ S.led[x].tok = h.tok
OneComputation == \A h \in Range(H) : {att[a].p : a \in Range(h.as)} = Parts
  /\ \A a, b \in Range(h.as) : att[a].e = h.e /\ att[a].plan = att[b].plan
Whole         == \A h \in Range(H) : h.whole
OneVersion    == \A l \in Places : \A c, o \in Range(S.at[l].rows) : LET a == att[c[1]]  b == att[o[1]] IN
  (a.q = b.q /\ a.e = b.e /\ a.p = b.p) => c[1] = o[1]
Kept          == \A t \in {x \in w.told : Loss \notin {"suffix", "ledger", "place", "primary"}
                                                  \/ (x.since = n.losses /\ (Loss = "primary" => w.past = <<>>))} :
  \E h \in Range(H) : h.q = t.q /\ h.e = t.e /\ Took(h) /\ \A a \in Range(h.as) : att[a].plan = t.plan
NotDropped    == \A x \in Names : LET r == S.led[x] IN r.open => \A i \in (r.app + 1)..Len(r.man) :
  r.man[i] \in S.log \/ \A l \in Places : Times(r.man[i], l) = 1
Whys          == {drv[d].why : d \in Drivers}
NoFalseAlarm ==
  /\ "WrittenTwice" \notin Whys  \* a run writes each epoch once
  /\ n.losses = 0 => Whys \cap {"SinkBehind", "DecisionLost", "Lost"} = {}
  /\ n.restores = 0 => "Diverged" \notin Whys
  /\ n.refusals = 0 => "Refused" \notin Whys
  /\ n.losses + n.dooms + n.commands = 0 => "Missing" \notin Whys
  /\ n.losses + n.restores = 0 /\ Cardinality(Drivers) = 1 => "Behind" \notin Whys
  /\ SinkId => \A x \in Names : S.led[x].gone \/ ~Retires(S.led[x], S.led[x].q)  \* its epochs continue
  /\ n.losses + n.commands = 0 /\ H = <<>> => Whys \cap {"Retired", "Replaced"} = {}
  /\ n.losses + n.faults + n.dooms = 0 /\ Cardinality(Drivers) = 1 /\ Loss # "lag" => Whys \cap {"Concurrent", "StaleSkip"} = {}
  /\ n.runs = 1 /\ n.dooms + n.commands + n.losses + n.refusals = 0 => Whys = {""}
Ends == Calm ~> \E q \in Queries : ckpt[q].done = LastEpoch
Symmetry == Permutations(Drivers)
Patient  ==  \* who reads a state that will be lost, or races for a sink, may retry forever: limits of draws and writes
  S.fence <= 4 /\ n.stamp <= 20
\* ---- the state to compare with a schedule of the core
Told(x) == LET r == S.led[x] IN
  [q |-> r.q, epoch |-> r.epoch, man |-> r.man, retired |-> r.retired, doomed |-> r.doomed, gone |-> r.gone,
   run |-> r.run, past |-> r.past, replayed |-> r.replayed, ever |-> r.ever, heir |-> r.heir,
   app |-> IF r.open /\ Profile # "converging" THEN r.app ELSE 0]
Shown == [x \in Names |-> Told(x)] @@ [log |-> S.log, holder |-> S.claim.holder, rows |-> S.at[1].rows]
=============================================================================
