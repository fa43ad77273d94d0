import pytest
from collections import Counter
from tests.chaos import *
from tests.turns import *
from tests.kit import *
from sparkonce.errors import *
from sparkonce.admin import Admin

WHOLE=[True,False]

def lone(whole, setup, actors, i):
    w=World(whole_epochs=whole); ctx=setup(w)
    t=Turns(w.memory,[i]*1000)
    t.run(*actors(ctx))
    return sum(1 for n,_ in t.calls if n==i)

def check(whole, setup, actors, verify):
    a=lone(whole,setup,actors,0); b=lone(whole,setup,actors,1)
    n=0; bad=Counter(); ex={}
    for order in interleavings(a,b):
        n+=1
        w=World(whole_epochs=whole); ctx=setup(w)
        t=Turns(w.memory,order)
        try:
            t.run(*actors(ctx))
            verify(w,ctx)
        except BaseException as e:
            k=type(e).__name__+" "+str(e)[:150]; bad[k]+=1; ex.setdefault(k,(order,t.calls))
    print(whole,a,b,n,len(bad))
    for k,v in bad.items(): print("  ",v,k, "\n      ",ex[k])
    assert not bad

def spark_actor(spark,last):
    def act(store):
        spark.query.through=store
        spark.run_until_failure(last)
    return act

@pytest.mark.parametrize("whole",WHOLE)
@pytest.mark.parametrize("prior",[-1,0])
def test_same_query(whole,prior):
    def setup(w):
        ck=Checkpoint()
        if prior>=0: Spark(Query(w),ck).run_to(prior)
        return [Spark(Query(w),ck),Spark(Query(w),ck)]
    def actors(c): return [spark_actor(s,prior+1) for s in c]
    def verify(w,c):
        s=Spark(Query(w),c[0].checkpoint)
        s.run_to(prior+2)
        require_exactly_once(s); require_clean(w,s.query); require_in_order(w)
        for x in c: assert all(isinstance(e,ConcurrentDriver) for e in x.refusals), x.refusals
    check(whole,setup,actors,verify)

@pytest.mark.parametrize("whole",WHOLE)
def test_two_new(whole):
    def setup(w): return [Spark(Query(w,id="a")),Spark(Query(w,id="b"))]
    def actors(c): return [spark_actor(s,0) for s in c]
    def verify(w,c):
        for s in c:
            s.query.through=None
            for _ in range(3): s.run_until_failure(1)
        assert len({r[0] for r in w.rows})==1, w.rows
        for s in c: require_exactly_once(s)
    check(whole,setup,actors,verify)

@pytest.mark.parametrize("whole",WHOLE)
@pytest.mark.parametrize("sid",[None,"s"])
@pytest.mark.parametrize("rep",[True,False])
def test_takeover(whole,sid,rep):
    def setup(w):
        a=Spark(Query(w,id="a",sink_id=sid,repeatable=rep)); a.run_to(0)
        b=Spark(Query(w,id="b",sink_id=sid,repeatable=rep,on_new_checkpoint=None if rep else "continue:a"))
        return [a,b]
    def actors(c): return [spark_actor(c[0],1),spark_actor(c[1],0)]
    def verify(w,c):
        a,b=c
        a.query.through=b.query.through=None
        b.run_to(1)
        assert not a.run_until_failure(a.checkpoint.committed+1) and isinstance(a.refusals[-1],QueryRetired)
        for s in c: require_exactly_once(s)
        require_clean(w,a.query,b.query)
    check(whole,setup,actors,verify)

@pytest.mark.parametrize("whole",WHOLE)
def test_abort_vs_commit(whole):
    def setup(w):
        s=Spark(Query(w)); s.run_to(0)
        q=Query(w); r=q.start(); rc=r.stage(1,["x","y","z"],["v"])
        return [s,q,r,rc]
    def actors(c):
        s,q,r,rc=c
        def commit(store):
            q2=Query(q.world,through=store); r2=Run(q2,r.run_id)
            try: r2.commit(1,rc)
            except StoreLostData: raise
            except (StoreError,CommitRefused): pass
        def abort(store):
            q2=Query(q.world,through=store); r2=Run(q2,r.run_id)
            r2.abort(1,rc)
        return [commit,abort]
    def verify(w,c):
        s=c[0]; 
        s.query.start().write(1,["p","q"])
        s.query.start().write(2,["p2"])
        rows=[r for r in w.rows if "#" not in r]
        assert sorted(rows) in (["p","p2","q"],["p2","v","x","y","z"]), rows
        assert w.staged()==0
    check(whole,setup,actors,verify)

@pytest.mark.parametrize("whole",WHOLE)
@pytest.mark.parametrize("first",[0,1])
def test_gc_vs_commit(whole,first):
    def setup(w):
        s=Spark(Query(w)); 
        if first: s.run_to(0)
        q=Query(w); r=q.start(); rc=r.stage(first,["x","y","z"],["v"])
        return [s,q,r,rc]
    def actors(c):
        s,q,r,rc=c
        def commit(store):
            q2=Query(q.world,through=store); r2=Run(q2,r.run_id)
            try: r2.commit(first,rc)
            except StoreLostData: raise
            except (StoreError,CommitRefused): pass
        def gc(store):
            a=Admin(store)
            for x in a.sinks(): a.gc(x,0.0)
        return [commit,gc]
    def verify(w,c):
        s=c[0]; 
        s.query.start().write(first,["p","q"])
        s.query.start().write(first+1,["p2"])
        rows=[r for r in w.rows if "#" not in r]
        assert sorted(rows) in (["p","p2","q"],["p2","v","x","y","z"]), rows
        assert w.staged()==0
    check(whole,setup,actors,verify)
