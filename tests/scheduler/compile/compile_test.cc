#include "scheduler/compile/compile.h"

#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

CompileRequest Request(const JobSpec& job, int workers) {
  CompileRequest request;
  *request.mutable_job() = job;
  for (const WorkerDescription& worker : ExampleWorkers(workers)) {
    *request.add_workers() = worker;
  }
  return request;
}

constexpr CompileOptions kAll = {.programs = true, .timeline = true};

TEST(Compile, AnswersWithWhatIsAskedFor) {
  const CompileRequest request = Request(ExampleJob({.data = 2}), 2);
  CompileResponse response = Compile(request, {});
  EXPECT_EQ(response.error(), "");
  EXPECT_EQ(response.plan().roles_size(), 0);
  EXPECT_GT(response.plan().prediction().step_seconds(), 0);
  EXPECT_FALSE(response.has_predicted());
  EXPECT_EQ(Compile(request, {.programs = true}).plan().roles_size(), 1);
  response = Compile(request, kAll);
  EXPECT_EQ(response.plan().roles_size(), 1);
  EXPECT_TRUE(response.predicted().predicted());
  EXPECT_EQ(response.predicted().ranks(1).spans_size(),
            response.plan().roles(0).programs(0).instructions_size());
}

TEST(Compile, Explains) {
  CompileRequest request = Request(ExampleJob({.data = 2}), 2);
  request.set_explain(true);
  const CompileResponse response = Compile(request, {});
  EXPECT_EQ(response.error(), "");
  EXPECT_FALSE(response.has_plan());
  EXPECT_EQ(response.explanation().ways_size(), 12);
  request.mutable_job()->mutable_model()->set_num_attention_heads(3);
  EXPECT_THAT(Compile(request, {}).error(),
              StartsWith("model.num_attention_heads: 3 "));
}

TEST(Compile, ARefusalIsAnAnswer) {
  JobSpec job = ExampleJob({});
  job.mutable_model()->set_num_attention_heads(3);
  const CompileResponse response = Compile(Request(job, 1), {});
  EXPECT_THAT(response.error(), StartsWith("model.num_attention_heads: 3 "));
  EXPECT_FALSE(response.has_plan());
}

TEST(Compile, PlansElasticJobsForFewerWorkers) {
  JobSpec job = ExampleJob({.data = 4});
  EXPECT_THAT(Compile(Request(job, 3), {}).error(), HasSubstr("4 workers"));
  job.mutable_recovery()->set_copies(0);  // there is no host tier
  job.mutable_elastic()->set_min_workers(2);
  job.mutable_checkpoint()->set_directory("/checkpoints");
  const CompileResponse response = Compile(Request(job, 3), kAll);
  EXPECT_EQ(response.error(), "");
  EXPECT_EQ(response.plan().job().parallelism().data(), 2);
  EXPECT_EQ(response.predicted().ranks_size(), 2);
  EXPECT_NE(Compile(Request(job, 1), {}).error(), "");
  EXPECT_EQ(Compile(Request(job, 4), {}).plan().job().parallelism().data(), 4);
}

TEST(CompileMain, FiltersBytes) {
  const CompileRequest request = Request(ExampleJob({}), 1);
  std::istringstream in(request.SerializeAsString());
  std::ostringstream out;
  EXPECT_EQ(CompileMain(kAll, in, out), 0);
  EXPECT_EQ(out.str(), Compile(request, kAll).SerializeAsString());
}

TEST(CompileMain, RefusesWhatIsNoRequest) {
  std::istringstream in("\xff\xff\xff not a message");
  std::ostringstream out;
  EXPECT_EQ(CompileMain({}, in, out), 1);
  EXPECT_EQ(out.str(), "");
}

TEST(CompileMain, SaysWhenTheAnswerCannotBeWritten) {
  std::istringstream in(Request(ExampleJob({}), 1).SerializeAsString());
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_EQ(CompileMain({}, in, out), 1);
}

}  // namespace
}  // namespace troupe
