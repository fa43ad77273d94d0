-------------------------------- MODULE walks --------------------------------
(* Paths of the model for the core to walk: Next of sparkonce.tla, with a name of each step (`did`) and the state   *)
(* of store and drivers. integration/model plays a path on the core, which must reach the same states.              *)
EXTENDS mutants
VARIABLE did
Now       == [shown |-> Shown', sent |-> w'.sent,
              at |-> [d \in Drivers |-> [pc |-> drv'[d].pc, why |-> drv'[d].why, kind |-> drv'[d].m.kind]]]
It(label) == did' = label @@ Now
Perhaps   == TRUE  Seldom == RandomElement(1..8) = 1  \* else a random walk has constant trouble, and few epochs
By(d)     == [d |-> d, pc |-> drv[d].pc, k |-> drv[d].k]
Asking(d) == By(d) @@ [m |-> Sends(drv[d]), does |-> Does(Sends(drv[d]))]
Labelled ==
  \/ \E d \in Drivers :
       \/ Looks(d) /\ It([act |-> "looks", q |-> drv[d].q] @@ By(d))
       \/ Note(d)  /\ It([act |-> "notes"] @@ By(d))
       \/ Perhaps /\ Crash(d) /\ It([act |-> "dies"] @@ By(d))
       \/ \E as \in [Parts -> Mine(drv[d])] : /\ \A p \in Parts : att[as[p]].p = p /\ IsReady(as[p])
                                              /\ Commits(d, as) /\ It([act |-> "commits", as |-> as] @@ By(d))
       \/ Perhaps /\ \E x \in Names : \/ Recover(d, x)    /\ It([act |-> "recovers", x |-> x] @@ By(d))
                                      \/ AcceptLoss(d, x) /\ It([act |-> "accepts", x |-> x] @@ By(d))
       \/ \E arrives, late, heard \in BOOLEAN : /\ Asked(d, arrives, late, heard)
            /\ It([act |-> "asks", arrives |-> arrives, late |-> late, heard |-> heard] @@ Asking(d))
       \/ \E q \in Queries, e \in Epochs : Starts(d, q, e)   /\ It([act |-> "starts", q |-> q, e |-> e] @@ By(d))
       \/ \E p \in Parts, size \in Sizes : Begin(d, p, size) /\ It([act |-> "task", p |-> p, size |-> size] @@ By(d))
  \/ \E a \in DOMAIN att, arrives, late \in BOOLEAN : /\ arrives \/ late
       /\ (Perhaps \/ (arrives /\ ~late)) /\ Stages(a, arrives, late)
       /\ It([act |-> "stages", a |-> a, arrives |-> arrives, late |-> late])
  \/ Perhaps /\ \E a \in DOMAIN att :
       \/ Fails(a)    /\ It([act |-> "fails", a |-> a])
       \/ Refuse({a}) /\ It([act |-> "refuses", as |-> {a}])
       \/ att[a].done > 0 /\ Doom(Name(att[a].q), {a}) /\ It([act |-> "dooms", x |-> Name(att[a].q), a |-> a])
  \/ Perhaps /\ \E x \in Names :
       \/ Leave(x)  /\ It([act |-> "leaves", x |-> x])
       \/ Forget(x) /\ It([act |-> "forgets", x |-> x])
       \/ \E late \in BOOLEAN : LET over == {a \in DOMAIN att : Name(att[a].q) = x /\ IsOver(S.led[x], a)} IN
            Sweep(x, over, late) /\ It([act |-> "sweeps", x |-> x, as |-> over, late |-> late])
  \/ Perhaps /\ \E m \in w.sent, again \in BOOLEAN :
       Deliver(m, again) /\ It([act |-> "delivers", m |-> m, again |-> again, does |-> Does(Stamped(m))])
  \/ Perhaps /\ Refuse({}) /\ It([act |-> "refuses", as |-> {}])
  \/ Perhaps /\ w.past = <<>> /\ Keeps /\ It([act |-> "keeps"])
  \/ Perhaps /\ Crosses /\ It([act |-> "crosses"])
  \/ Perhaps /\ Loses /\ It([act |-> "loses"])
  \/ Calms /\ It([act |-> "calms"])
  \/ Perhaps /\ \E q \in Queries, e \in -1..LastEpoch : Restore(q, e) /\ It([act |-> "restores", q |-> q, e |-> e])
Walks == Init /\ did = [act |-> "begins"] /\ [][Labelled]_<<w, drv, did>>
States == <<w, drv>>  \* the path to a state does not distinguish it
IsNext == [][Next]_<<w, drv>>
\* ---- covering paths: TLC reports the first state after each kind of step
Of(fields) == [field \in fields \cap DOMAIN did |-> did[field]]
Seen == <<Of({"act", "pc", "arrives", "late", "heard", "again", "does"}), IF "m" \in DOMAIN did THEN did.m.kind ELSE "",
          IF "d" \in DOMAIN did THEN did.at[did.d] ELSE "">>
ASSUME TLCSet(1, {})
Kinds == <<w, drv, Seen>>  \* even if it leads to a known state
IsKnown == Seen \in TLCGet(1) \/ (TLCSet(1, TLCGet(1) \cup {Seen}) /\ FALSE)
=============================================================================
