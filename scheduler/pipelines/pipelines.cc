#include "scheduler/pipelines/pipelines.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/closest.h"
#include "scheduler/pipelines/chimera.h"
#include "scheduler/pipelines/gpipe.h"
#include "scheduler/pipelines/interleaved_1f1b.h"
#include "scheduler/pipelines/naive.h"
#include "scheduler/pipelines/one_forward_one_backward.h"
#include "scheduler/pipelines/pipedream.h"
#include "scheduler/pipelines/pipedream_2bw.h"
#include "scheduler/pipelines/zb_h1.h"
#include "scheduler/pipelines/zb_h2.h"
#include "scheduler/pipelines/zb_v.h"

namespace troupe {

const std::vector<Pipeline>& Pipelines() {
  static const auto* const kPipelines = new std::vector<Pipeline>{
      {"naive", "one micro-batch at a time, forward and backward", NaiveOrder},
      {"gpipe", "all micro-batches forward, then all backward", GpipeOrder},
      {.name = kDefaultPipeline,
       .summary = "backward as early as possible",
       .order = OneForwardOneBackwardOrder,
       .tried_stages = {1}},
      {.name = "interleaved_1f1b",
       .summary = "several stages a rank",
       .order = Interleaved1F1BOrder,
       .default_virtual_stages = 2,
       .tried_stages = {2, 4, 8}},
      {.name = "chimera",
       .summary = "two directions at once",
       .order = ChimeraOrder,
       .tried_stages = {1}},
      {.name = "zb_h1",
       .summary = "backward in two halves, memory of 1f1b",
       .order = ZbH1Order,
       .tried_stages = {1}},
      {.name = "zb_h2",
       .summary = "backward in two halves, no bubble, twice the memory",
       .order = ZbH2Order,
       .overlaps_steps = true,
       .tried_stages = {1}},
      {.name = "zb_v",
       .summary = "two stages a rank in a V, no bubble, memory of 1f1b",
       .order = ZbVOrder,
       .default_virtual_stages = 2,
       .overlaps_steps = true,
       .tried_stages = {2}},
      {.name = "pipedream",
       .summary = "never drains; weights of several ages",
       .order = PipedreamOrder,
       .asynchronous = true,
       .fields = {kVerticalSync}},
      {.name = "pipedream_2bw",
       .summary = "never drains; weights one step old everywhere",
       .order = Pipedream2bwOrder,
       .asynchronous = true},
  };
  return *kPipelines;
}

absl::StatusOr<Pipeline> FindPipeline(absl::string_view name) {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) {
    if (pipeline.name == name) return pipeline;
    names.emplace_back(pipeline.name);
  }
  const std::string closest = ClosestName(name, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "parallelism.pipeline_schedule: there is no \"", name, "\"; ",
      closest.empty() ? absl::StrCat("there are: ", absl::StrJoin(names, ", "))
                      : absl::StrCat("did you mean \"", closest, "\"?")));
}

}  // namespace troupe
