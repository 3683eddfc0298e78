#include "scheduler/cluster/compilation.h"

#include "gtest/gtest.h"
#include "proto/plan/worker_refusal.h"
#include "tests/scheduler/cluster/fake_compiler.h"

namespace troupe {
namespace {

struct Workers {
  WorkerId Add(const std::string& name, int64_t bytes = 1000) {
    Register request = RegisterOf(name);
    request.mutable_worker()->mutable_budgets(0)->set_bytes(bytes);
    return *table.Add(request, absl::UnixEpoch());
  }
  WorkerId AddGpu(const std::string& name) {
    Register request = RegisterOf(name);
    request.mutable_worker()->mutable_gpu()->set_uuid(name);
    return *table.Add(request, absl::UnixEpoch());
  }
  WorkerTable table{Limits()};
};

TEST(Compilation, HasNoChoiceWhereThereAreTooFewWorkers) {
  Workers workers;
  workers.Add("w0");
  EXPECT_TRUE(CompilationFor(SpecOf(2), 2, workers.table).choices.empty());
}

TEST(Compilation, AsksOnceWhereAllChoicesAreTheSame) {
  Workers workers;
  const WorkerId w1 = workers.Add("w1");
  const WorkerId w0 = workers.Add("w0");
  const Compilation c = CompilationFor(SpecOf(2), 2, workers.table);
  ASSERT_EQ(c.choices.size(), 1u);
  EXPECT_TRUE(c.choices[0].idle);
  EXPECT_EQ(c.choices[0].ids, (std::vector<WorkerId>{w0, w1}));
  EXPECT_EQ(c.choices[0].workers[0]->name(), "w0");
}

TEST(Compilation, PrefersIdleOnesThenLargeOnesThenAll) {
  Workers workers;
  const WorkerId busy = workers.Add("a-largest", 3000);
  workers.table.Seat(busy, JobId(1), 0);
  const WorkerId small = workers.Add("b");
  const WorkerId large = workers.Add("c-large", 2000);
  const Compilation c = CompilationFor(SpecOf(1), 1, workers.table);
  ASSERT_EQ(c.choices.size(), 3u);
  EXPECT_EQ(c.choices[0].ids[0], small);
  EXPECT_EQ(c.choices[1].ids[0], large);
  EXPECT_EQ(c.choices[2].ids[0], busy);
  EXPECT_FALSE(c.choices[2].idle);
}

TEST(Compilation, KeepsGpusAndCpusApartWhereEitherIsEnough) {
  Workers workers;
  const WorkerId a = workers.Add("a", 9000);
  const WorkerId b = workers.AddGpu("b");
  const WorkerId c = workers.Add("c");
  const WorkerId d = workers.AddGpu("d");
  const Compilation two = CompilationFor(SpecOf(2), 2, workers.table);
  ASSERT_EQ(two.choices.size(), 2u);
  EXPECT_EQ(two.choices[0].ids, (std::vector<WorkerId>{b, d}));
  EXPECT_EQ(two.choices[1].ids, (std::vector<WorkerId>{a, c}));
  // Neither is: the planner is to say what is wrong.
  const Compilation three = CompilationFor(SpecOf(3), 3, workers.table);
  ASSERT_FALSE(three.choices.empty());
  EXPECT_EQ(three.choices[0].ids.size(), 3u);
}

TEST(Compilation, TakesTheFirstChoiceThatFits) {
  const FakeCompiler compiler;
  Workers workers;
  const WorkerId busy = workers.Add("a-largest", 3000);
  workers.table.Seat(busy, JobId(1), 0);
  workers.Add("b");
  const WorkerId large = workers.Add("c-large", 2000);
  const auto outcome_of = [&](int bytes) {
    JobSpec spec = SpecOf(1);
    spec.mutable_model()->set_hidden_size(bytes);
    return CompileFirstFit(compiler, CompilationFor(spec, 1, workers.table));
  };
  CompileOutcome outcome = outcome_of(1500);
  EXPECT_TRUE(outcome.fits() && outcome.idle);
  EXPECT_EQ(outcome.workers[0], large);
  EXPECT_TRUE(outcome.refusal.ok());
  EXPECT_EQ(outcome.compiled.outline->roles_size(), 0);
  outcome = outcome_of(2500);
  EXPECT_TRUE(outcome.fits());
  EXPECT_FALSE(outcome.idle);
  EXPECT_EQ(outcome.workers[0], busy);
  EXPECT_TRUE(absl::IsInvalidArgument(outcome.refusal));
  outcome = outcome_of(9000);
  EXPECT_FALSE(outcome.fits());
  EXPECT_TRUE(absl::IsInvalidArgument(outcome.refusal));
}

TEST(Compilation, ExplainsForTheBestChoice) {
  const FakeCompiler compiler;
  Workers workers;
  workers.Add("a");
  workers.Add("b");
  Compilation compilation = CompilationFor(SpecOf(2), 2, workers.table);
  compilation.explain = true;
  const CompileOutcome outcome = CompileFirstFit(compiler, compilation);
  EXPECT_TRUE(outcome.refusal.ok());
  EXPECT_FALSE(outcome.fits());
  EXPECT_EQ(outcome.explanation.ways(0).bytes_sent_per_step(), 2);
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(CompileFirstFit(compiler, compilation, [] {
                                 return absl::DeadlineExceededError("too long");
                               }).refusal));
}

// Two ranks in 5 s and in 3 s, two that need more memory than there is, and
// one.
TEST(Compilation, OfElasticWaysTheQuickestOfTheWidestIsTaken) {
  const FakeCompiler compiler;
  Workers workers;
  workers.Add("a");
  workers.Add("b");
  std::vector<JobSpec> ways = {SpecOf(2), SpecOf(2), SpecOf(2), SpecOf(1)};
  ways[0].mutable_model()->add_forward_us(5e6);
  ways[1].mutable_model()->add_forward_us(3e6);
  ways[2].mutable_model()->add_forward_us(1e6);
  ways[2].mutable_model()->set_hidden_size(5000);
  ways[3].mutable_model()->add_forward_us(1e6);
  const CompileOutcome outcome = CompileFirstFit(
      compiler, ElasticCompilation(ways, compiler, workers.table.Idle(), 0));
  EXPECT_TRUE(outcome.refusal.ok());
  EXPECT_EQ(outcome.workers.size(), 2u);
  EXPECT_EQ(outcome.compiled.plan->prediction().step_seconds(), 3);
  EXPECT_TRUE(ElasticCompilation(ways, compiler, workers.table.Idle(), 2)
                  .choices.empty())
      << "more than two ranks";
}

// Two of the three that are left are large enough, and the third by name is
// not.
TEST(Compilation, AWorkerThatIsTooSmallLeavesTheNarrowerOnes) {
  const FakeCompiler compiler;
  Workers workers;
  workers.Add("a-small", 10);
  const WorkerId b = workers.Add("b");
  const WorkerId c = workers.Add("c");
  JobSpec spec = SpecOf(3);
  spec.mutable_model()->set_hidden_size(500);
  Compilation asked = CompilationFor(spec, 3, workers.table);
  AddNarrower(compiler, workers.table, asked);
  CompileOutcome outcome = CompileFirstFit(compiler, asked);
  EXPECT_FALSE(outcome.fits()) << "not without `elastic`";
  spec.mutable_elastic()->set_min_workers(1);
  asked = CompilationFor(spec, 3, workers.table);
  AddNarrower(compiler, workers.table, asked);
  outcome = CompileFirstFit(compiler, asked);
  ASSERT_TRUE(outcome.fits());
  EXPECT_EQ(outcome.workers, (std::vector<WorkerId>{b, c}));
  EXPECT_TRUE(outcome.refusal.ok());
  // Idle ones before all that are alive, busy or not.
  const WorkerId d = workers.Add("d");
  workers.table.Seat(d, JobId(1), 0);
  asked = CompilationFor(spec, 3, workers.table);
  AddNarrower(compiler, workers.table, asked);
  outcome = CompileFirstFit(compiler, asked);
  EXPECT_TRUE(outcome.idle);
  EXPECT_EQ(outcome.workers.size(), 2u);
}

TEST(Compilation, AndSoDoesOneOfAnotherKind) {
  const FakeCompiler compiler;
  Workers workers;
  workers.Add("a");
  const WorkerId b = workers.AddGpu("b");
  const WorkerId c = workers.AddGpu("c");
  JobSpec spec = SpecOf(3);
  spec.mutable_elastic()->set_min_workers(1);
  Compilation asked;
  asked.spec = spec;
  AddNarrower(compiler, workers.table, asked);
  const CompileOutcome outcome = CompileFirstFit(compiler, asked);
  EXPECT_EQ(outcome.workers, (std::vector<WorkerId>{b, c}));
}

// Planning that was ended has said nothing of the choices that were left.
TEST(Compilation, SaysWhyItWasEnded) {
  const FakeCompiler compiler;
  Workers workers;
  workers.Add("a");
  const CompileOutcome outcome =
      CompileFirstFit(compiler, CompilationFor(SpecOf(1), 1, workers.table),
                      [] { return absl::DeadlineExceededError("too long"); });
  EXPECT_FALSE(outcome.fits());
  EXPECT_TRUE(absl::IsDeadlineExceeded(outcome.refusal));
}

// Where others would do, that is more than that there was no time for more.
TEST(Compilation, ThatOthersWouldDoIsSaidWherePlanningForFewerIsEnded) {
  struct Case {
    absl::Status ended;
    int plans = 1;  // before that
    bool refused_itself = false;
    bool for_workers = false;
  };
  const absl::Status too_long = absl::DeadlineExceededError("too long");
  const Case cases[] = {
      {too_long, 1, false, true},
      {too_long, 2, false, true},
      {too_long, 1, true, false},
      {absl::CancelledError("nobody waits"), 1, false, false}};
  for (const Case& c : cases) {
    FakeCompiler compiler;
    Workers workers;
    for (const char* name : {"a", "b", "c"}) workers.Add(name);
    JobSpec spec = SpecOf(3);
    spec.mutable_elastic()->set_min_workers(1);
    spec.mutable_model()->set_hidden_size(5000);
    if (c.refused_itself) compiler.refused_ranks = {3};
    Compilation asked = CompilationFor(spec, 3, workers.table);
    AddNarrower(compiler, workers.table, asked);
    int planned = 0;
    const CompileOutcome outcome = CompileFirstFit(compiler, asked, [&] {
      return ++planned > c.plans ? c.ended : absl::OkStatus();
    });
    EXPECT_EQ(outcome.refusal.code(), c.ended.code()) << outcome.refusal;
    EXPECT_EQ(IsForWorkers(outcome.refusal), c.for_workers) << outcome.refusal;
  }
}

}  // namespace
}  // namespace troupe
