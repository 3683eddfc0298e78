// docs/layouts.md says what plans do now: its tables are made from them. To
// write them anew:
//
//   TROUPE_DOCS_OUT=$PWD/docs bazel-bin/tests/golden/golden_test
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/find_program.h"
#include "proto/plan/groups.h"
#include "proto/plan/memory.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/slices.h"
#include "scheduler/planner/planner.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/rates.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

constexpr int kSizes[] = {2, 4};
constexpr double kMebibyte = 1 << 20;

// GPT-2 124M, sequences of 1,024, `sequences` of them in a step, f32.
Plan PlanOf(const ParallelismSpec& parallelism, int sequences,
            int micro_batch = 1, int heads = 12) {
  JobSpec job =
      ExampleJob({.micro_batches = 1, .micro_batch_size = micro_batch});
  ModelSpec& model = *job.mutable_model();
  model.set_num_hidden_layers(12);
  model.set_hidden_size(768);
  model.set_num_attention_heads(heads);
  model.set_vocab_size(50257);
  model.set_max_position_embeddings(1024);
  job.mutable_training()->set_sequence_length(1024);
  job.mutable_training()->set_global_batch_size(sequences);
  job.mutable_parallelism()->MergeFrom(parallelism);
  std::vector<WorkerDescription> workers = ExampleWorkers(RanksNeeded(job));
  for (WorkerDescription& worker : workers) worker.clear_budgets();
  const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
  CHECK_OK(plan.status());
  return *plan;
}

Plan PlanOf(int tensor, bool sequence) {
  ParallelismSpec parallelism;
  parallelism.set_tensor(tensor);
  parallelism.set_sequence_parallel(sequence);
  return PlanOf(parallelism, 1);
}

const Program& TrainOf(const Plan& plan) {
  return *FindProgram(plan.roles(0), Program::TRAIN);
}

std::string Row(const std::vector<std::string>& cells) {
  return absl::StrCat("| ", absl::StrJoin(cells, " | "), " |\n");
}
std::string Head(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (size_t i = 0; i < cells.size(); ++i) line += "---|";
  return absl::StrCat(Row(cells), line, "\n");
}

// "tensor 2", "tensor 2, sequence".
std::string Name(int tensor, bool sequence) {
  return absl::StrCat("`tensor: ", tensor, "`", sequence ? ", sequence" : "");
}

// MiB that a rank sends for a micro-batch, by unit and direction.
std::string Bytes() {
  std::vector<std::string> names = {"of GPT-2 124M, MiB sent"};
  std::vector<std::map<std::pair<int, bool>, double>> columns;
  int head = 0;
  for (const int tensor : kSizes) {
    for (const bool sequence : {false, true}) {
      const Plan plan = PlanOf(tensor, sequence);
      head = plan.units_size() - 1;
      names.push_back(Name(tensor, sequence));
      auto& sent = columns.emplace_back();
      for (const Instruction& i : TrainOf(plan).instructions()) {
        if (i.kind() != Instruction::EXCHANGE) continue;
        sent[{i.unit(), i.exchange().backward()}] += CollectiveBytesSent(
            {.bytes = CollectiveBytes(plan, 0, i),
             .ranks = GroupSize(plan.mesh(), plan.groups(i.group())),
             .collective = i.exchange().collective()});
      }
    }
  }
  std::string text = Head(names);
  const std::pair<const char*, int> units[] = {
      {"embedding", 0}, {"a block", 1}, {"head", head}};
  for (const auto& [name, unit] : units) {
    for (const bool backward : {false, true}) {
      std::vector<std::string> cells = {
          absl::StrCat(name, backward ? ", backward" : ", forward")};
      for (auto& sent : columns) {
        cells.push_back(
            absl::StrFormat("%.2f", sent[{unit, backward}] / kMebibyte));
      }
      text += Row(cells);
    }
  }
  return text;
}

// MiB of a rank by line item.
std::string Memory() {
  std::vector<std::string> names = {"of GPT-2 124M, MiB"};
  std::vector<std::string> items;
  std::vector<std::map<std::string, double>> columns;
  for (const int tensor : {1, 2, 4}) {
    for (const bool sequence : {false, true}) {
      if (tensor == 1 && sequence) continue;
      const Plan plan = PlanOf(tensor, sequence);
      names.push_back(tensor == 1 ? "one rank" : Name(tensor, sequence));
      auto& column = columns.emplace_back();
      for (const MemoryItem& item : MemoryItems(plan.roles(0))) {
        if (columns.size() == 1) items.push_back(item.item());
        column[item.item()] = static_cast<double>(item.bytes()) / kMebibyte;
      }
    }
  }
  std::string text = Head(names);
  for (const std::string& item : items) {
    std::vector<std::string> cells = {item};
    for (auto& column : columns) {
      cells.push_back(absl::StrFormat("%.1f", column[item]));
    }
    text += Row(cells);
  }
  return text;
}

// What a block's exchanges send, of one micro-batch.
double BlockBytes(const Plan& plan) {
  double sent = 0;
  for (const Instruction& i : TrainOf(plan).instructions()) {
    if (i.kind() != Instruction::EXCHANGE || i.unit() != 1 ||
        i.micro_batch() != 0) {
      continue;
    }
    sent += static_cast<double>(CollectiveBytesSent(
        {.bytes = CollectiveBytes(plan, 0, i),
         .ranks = GroupSize(plan.mesh(), plan.groups(i.group())),
         .collective = i.exchange().collective()}));
  }
  return sent;
}

// Four ranks by each row, or eight: bytes and memory of a rank, MiB.
std::string Rows() {
  const char* const kJobs[] = {
      "data: 4",
      "data: 4, zero: 1",
      "data: 4, zero: 2",
      "data: 4, zero: 3",
      "tensor: 4",
      "tensor: 4, sequence_parallel: true",
      "context: 4, context_method: ulysses",
      "context: 4, context_method: ring",
      "context: 4, context_method: ring_self_attention",
      "context: 4, context_method: usp, ulysses_size: 2",
      "context: 4, context_method: ring, zero: 3",
      "tensor: 8",
      "tensor: 8, sequence_parallel: true",
      "tensor: 4, tensor_method: 2d",
      "tensor: 8, tensor_method: 2.5d, tensor_depth: 2",
      "tensor: 8, tensor_method: 3d"};
  const std::vector<std::string> items = {"parameters", "gradients",
                                          "optimizer_moments", "activations"};
  std::vector<std::string> names = {"`parallelism`", "a block sends",
                                    "a step sends"};
  names.insert(names.end(), items.begin(), items.end());
  std::string text = Head(names);
  for (const char* const job : kJobs) {
    ParallelismSpec parallelism;
    CHECK(google::protobuf::TextFormat::ParseFromString(
        absl::StrReplaceAll(
            job, {{": ring_self_attention", ": 'ring_self_attention'"},
                  {": ulysses", ": 'ulysses'"},
                  {": ring", ": 'ring'"},
                  {": usp", ": 'usp'"},
                  {": 2d", ": '2d'"},
                  {": 2.5d", ": '2.5d'"},
                  {": 3d", ": '3d'"}}),
        &parallelism))
        << job;
    // These cut the sequences of a micro-batch.
    const int sequences = parallelism.has_tensor_method() ? 4 : 1;
    const Plan plan =
        PlanOf(parallelism, 4, sequences, parallelism.tensor() == 8 ? 16 : 12);
    std::map<std::string, double> memory;
    for (const MemoryItem& item : MemoryItems(plan.roles(0))) {
      memory[item.item()] += static_cast<double>(item.bytes()) / kMebibyte;
    }
    std::vector<std::string> cells = {
        absl::StrCat("`", job, "`"),
        absl::StrFormat("%.1f", BlockBytes(plan) / sequences / kMebibyte),
        absl::StrFormat("%.0f",
                        static_cast<double>(
                            plan.prediction().ranks(0).bytes_sent_per_step()) /
                            kMebibyte)};
    for (const std::string& item : items) {
      cells.push_back(absl::StrFormat("%.1f", memory[item]));
    }
    text += Row(cells);
  }
  return text;
}

std::string RangesText(const ParameterBox& box) {
  return absl::StrCat("[",
                      absl::StrJoin(box.whole, ", ",
                                    [](std::string* out, const Range& range) {
                                      absl::StrAppend(out, range.begin, ":",
                                                      range.end);
                                    }),
                      "]");
}

// What each of two ranks has of the first block's weights.
std::string Slices() {
  const Plan plan = PlanOf(2, false);
  std::string text = Head({"weight of a block", "whole", "rank 0", "rank 1"});
  for (const Parameter& parameter : plan.units(1).parameters()) {
    std::vector<std::string> cells = {
        absl::StrCat("`", parameter.name(), "`"),
        absl::StrCat("[", absl::StrJoin(WholeShape(parameter), ", "), "]")};
    for (int rank = 0; rank < 2; ++rank) {
      std::vector<std::string> boxes;
      for (const ParameterBox& box :
           BoxesOf(parameter, {.mesh = &plan.mesh(), .rank = rank})) {
        boxes.push_back(RangesText(box));
      }
      cells.push_back(absl::StrJoin(boxes, " "));
    }
    text += Row(cells);
  }
  return text;
}

// `page` with what stands between the marks of this name made anew.
std::string WithPart(const std::string& page, absl::string_view name,
                     const std::string& made) {
  const std::string begin =
      absl::StrCat("<!-- made by tests: ", name, " -->\n");
  const size_t from = page.find(begin);
  const size_t to = page.find("<!-- end -->", from);
  EXPECT_NE(from, std::string::npos) << "no part " << name;
  if (from == std::string::npos || to == std::string::npos) return page;
  return absl::StrCat(page.substr(0, from), begin, made, page.substr(to));
}

TEST(LayoutsPage, IsWhatPlansDo) {
  std::stringstream text;
  text << std::ifstream("docs/layouts.md").rdbuf();
  const std::string page = text.str();
  std::string made = WithPart(page, "rows", Rows());
  made = WithPart(made, "slices", Slices());
  made = WithPart(made, "bytes", Bytes());
  made = WithPart(made, "memory", Memory());
  if (const char* const out = std::getenv("TROUPE_DOCS_OUT")) {
    std::ofstream(absl::StrCat(out, "/layouts.md")) << made;
    return;
  }
  EXPECT_EQ(page, made);
}

}  // namespace
}  // namespace troupe
