// Plans that keep attention within documents, broken in the ways in which ops
// can forget them.
#include "proto/plan/check_documents.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_program.h"
#include "tests/proto/plan/planted.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

JobSpec IsolatingJob(const std::string& method) {
  JobSpec job = ExampleJob({.data = 2});
  job.mutable_data()->set_isolate_documents(true);
  if (!method.empty()) {
    job.mutable_parallelism()->set_context(2);
    job.mutable_parallelism()->set_context_method(method);
  }
  return job;
}

void Forget(Op& op) {
  for (int i = 0; i < op.inputs_size(); ++i) {
    if (op.inputs(i).name() != "documents") continue;
    op.mutable_inputs()->DeleteSubrange(i, 1);
    return;
  }
  ADD_FAILURE() << "no documents";
}

const PlantedFault kFaults[] = {
    {"attention to all documents",
     [](Plan& p) { Forget(NthOp(p, Op::ATTENTION, 0)); },
     "ATTENTION does not read where documents begin"},
    {"a job that does not isolate them",
     [](Plan& p) {
       p.mutable_job()->mutable_data()->set_isolate_documents(false);
     },
     "reads where documents begin, which it has no use for"},
    {"documents from elsewhere",
     [](Plan& p) {
       for (BatchTensor& tensor : *p.mutable_batch()) {
         tensor.set_source("tokens");
       }
     },
     "does not read where documents begin"},
    {"documents that are something else",
     [](Plan& p) {
       Op& attention = NthOp(p, Op::ATTENTION, 0);
       InputOf(attention, "documents").set_tensor(attention.inputs(0).tensor());
     },
     "ATTENTION does not read where documents begin"},
};

TEST(CheckDocuments, NamesTheFault) {
  for (const PlantedFault& fault : kFaults) {
    Plan plan = ExamplePlan(IsolatingJob(""));
    ASSERT_EQ(CheckDocuments(plan), absl::OkStatus());
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckDocuments(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
  }
}

TEST(CheckDocuments, EachHopOfARingReadsThem) {
  Plan plan = ExamplePlan(IsolatingJob("ring"));
  ASSERT_EQ(CheckDocuments(plan), absl::OkStatus());
  Forget(NthOp(plan, Op::ATTENTION_PART, 1));
  EXPECT_THAT(std::string(CheckDocuments(plan).message()),
              HasSubstr("ATTENTION_PART does not read where documents begin"));

  plan = ExamplePlan(IsolatingJob("ring_self_attention"));
  ASSERT_EQ(CheckDocuments(plan), absl::OkStatus());
  Forget(NthOp(plan, Op::SOFTMAX, 0));
  EXPECT_THAT(std::string(CheckDocuments(plan).message()),
              HasSubstr("SOFTMAX does not read where documents begin"));
}

// Every stage that attends loads its batches; nothing else changes.
TEST(CheckDocuments, PlansOfAllMethodsPass) {
  for (const char* const method :
       {"", "ulysses", "ring", "ring_self_attention"}) {
    EXPECT_EQ(CheckPrograms(ExamplePlan(IsolatingJob(method))),
              absl::OkStatus())
        << method;
  }
}

}  // namespace
}  // namespace troupe
