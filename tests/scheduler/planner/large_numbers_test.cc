// A client that may submit a job may write any number into any field of it, and
// the scheduler plans in its own process: each is planned or refused soon, and
// nothing grows with the number itself.
#include <sys/resource.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "proto/base/steady_time.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/narrower.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Much longer than any takes on a busy machine.
constexpr absl::Duration kHangs = absl::Seconds(30);
constexpr int64_t kBytesMax = int64_t{1} << 30;
constexpr int kWorkers = 4;

constexpr int64_t kIntegers[] = {std::numeric_limits<int32_t>::max(), 1 << 20,
                                 65'537, 1 << 10, 128};

using Check = std::function<void(const std::string& what)>;

// Sets one number of the field, and takes it back after the check.
void TryNumbers(const FieldDescriptor& field, const std::string& path,
                Message& message, const Check& check) {
  const auto* reflection = message.GetReflection();
  const auto set = [&](const auto& one, const std::string& value) {
    const std::unique_ptr<Message> before(message.New());
    before->CopyFrom(message);
    if (field.is_repeated()) reflection->ClearField(&message, &field);
    one();
    check(absl::StrCat(path, " = ", value));
    message.CopyFrom(*before);
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      for (const int64_t value : kIntegers) {
        set(
            [&] {
              const auto number = static_cast<int32_t>(value);
              if (field.is_repeated()) {
                for (int i = 0; i < kWorkers; ++i) {
                  reflection->AddInt32(&message, &field, number);
                }
              } else {
                reflection->SetInt32(&message, &field, number);
              }
            },
            absl::StrCat(value));
      }
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      if (field.is_repeated()) return;
      for (const int64_t value :
           {std::numeric_limits<int64_t>::max(), int64_t{1} << 40}) {
        set([&] { reflection->SetInt64(&message, &field, value); },
            absl::StrCat(value));
      }
      return;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      if (field.is_repeated()) return;
      for (const double value : {1e300, std::nan(""), HUGE_VAL, 1e-300}) {
        set([&] { reflection->SetDouble(&message, &field, value); },
            absl::StrCat(value));
      }
      return;
    default:
      return;
  }
}

void TryFieldsOf(const std::string& path, Message& message,
                 const Check& check) {
  const auto* descriptor = message.GetDescriptor();
  for (int f = 0; f < descriptor->field_count(); ++f) {
    const FieldDescriptor& field = *descriptor->field(f);
    const std::string name =
        absl::StrCat(path, path.empty() ? "" : ".", field.name());
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      TryNumbers(field, name, message, check);
    } else if (!field.is_repeated()) {
      const auto* reflection = message.GetReflection();
      const bool was_there = reflection->HasField(message, &field);
      TryFieldsOf(name, *reflection->MutableMessage(&message, &field), check);
      if (!was_there) reflection->ClearField(&message, &field);
    }
  }
}

int64_t PeakBytes() {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} << 10;
}

struct Kind {
  std::string name;
  std::function<void(JobSpec& job)> make;
};
std::ostream& operator<<(std::ostream& out, const Kind& kind) {
  return out << kind.name;
}

const Kind kKinds[] = {
    {"plain", [](JobSpec&) {}},
    {"elastic",
     [](JobSpec& job) {
       job.mutable_elastic()->set_min_workers(1);
       job.mutable_checkpoint()->set_directory("/c");
     }},
    {"ring",
     [](JobSpec& job) {
       job.mutable_parallelism()->set_data(1);
       job.mutable_parallelism()->set_context(2);
       job.mutable_parallelism()->set_context_method("ring");
     }},
};

std::vector<WorkerDescription> Workers() {
  std::vector<WorkerDescription> workers = ExampleWorkers(kWorkers);
  for (WorkerDescription& worker : workers) {
    TierBudget& budget = *worker.add_budgets();
    budget.set_tier(HOST);
    budget.set_bytes(int64_t{1} << 30);
  }
  return workers;
}

class LargeNumbers : public testing::TestWithParam<Kind> {};

TEST_P(LargeNumbers, ArePlannedOrRefusedSoon) {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 2});
  GetParam().make(job);
  const std::vector<WorkerDescription> workers = Workers();
  ASSERT_TRUE(CompilePlan(job, workers).ok())
      << CompilePlan(job, workers).status();
  const int64_t peak_before = PeakBytes();
  absl::Duration slowest;
  std::string slowest_what;
  int planned = 0;
  int tried = 0;
  TryFieldsOf("", job, [&](const std::string& what) {
    SCOPED_TRACE(what);
    const absl::Time begin = SteadyNow();
    const absl::StatusOr<JobSpec> resolved = ResolveJob(job);
    const absl::Duration to_resolve = SteadyNow() - begin;
    if (resolved.ok()) NarrowerWays(job, kWorkers);
    const absl::Duration under_the_lock = SteadyNow() - begin;
    const absl::StatusOr<Plan> plan = CompilePlan(job, workers, [&] {
      return SteadyNow() - begin < kHangs
                 ? absl::OkStatus()
                 : absl::DeadlineExceededError("hangs");
    });
    const absl::Duration time = SteadyNow() - begin;
    ++tried;
    planned += plan.ok();
    EXPECT_LT(time, kHangs) << plan.status();
    EXPECT_LT(under_the_lock, absl::Seconds(5)) << to_resolve;
    EXPECT_LT(PeakBytes() - peak_before, kBytesMax);
    // Or there are too few workers.
    EXPECT_TRUE(plan.ok() || absl::IsInvalidArgument(plan.status()) ||
                absl::IsFailedPrecondition(plan.status()))
        << plan.status();
    if (time > slowest) {
      slowest = time;
      slowest_what = absl::StrCat(
          what, " (", absl::FormatDuration(to_resolve), " to resolve, ",
          absl::FormatDuration(under_the_lock), " with narrower ways)");
    }
  });
  EXPECT_GT(tried, 100);
  EXPECT_GT(planned, 10) << "of " << tried;
  RecordProperty("slowest", absl::StrCat(absl::FormatDuration(slowest), ": ",
                                         slowest_what));
  std::cout << GetParam().name << ": " << tried << " tried, " << planned
            << " planned; slowest " << absl::FormatDuration(slowest) << ": "
            << slowest_what << ", " << ((PeakBytes() - peak_before) >> 20)
            << " MiB\n";
}

INSTANTIATE_TEST_SUITE_P(All, LargeNumbers, testing::ValuesIn(kKinds),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe
