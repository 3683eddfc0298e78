#include "clients/cli/view/replicas_text.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "clients/cli/view/format.h"
#include "proto/plan/islands.h"
#include "proto/plan/memory.h"

namespace troupe {
namespace {

// "4 of 2 sequences on each rank"; "[3, 1] of 2 sequences on the replicas".
std::string MicroBatchesText(const Plan& plan) {
  const Derived& derived = plan.derived();
  const int servers = plan.job().parallelism().servers();
  const auto& all = derived.replica_micro_batches();
  const std::vector<int> counts(all.begin(),
                                all.end() - std::clamp(servers, 0, all.size()));
  const bool even = std::adjacent_find(counts.begin(), counts.end(),
                                       std::not_equal_to<>()) == counts.end();
  return absl::StrCat(
      "  micro-batches    ",
      even ? absl::StrCat(derived.micro_batches())
           : absl::StrCat("[", absl::StrJoin(counts, ", "), "]"),
      " of ", plan.job().training().micro_batch_size(), " sequences on ",
      !even          ? "the replicas"
      : servers == 0 ? "each rank"
                     : "each replica",
      "\n");
}

// "[3, 1] on the replicas"; empty where slices are even, or there are none.
std::string SlicesText(const Plan& plan) {
  const auto& weights = plan.job().parallelism().zero_weights();
  if (weights.empty()) return "";
  return absl::StrCat("  slices           in proportion to [",
                      absl::StrJoin(weights, ", "), "] on the replicas\n");
}

// "sync"; "bounded by 4: each step is one replica's".
std::string ModeText(const Plan& plan) {
  const ServersSpec& servers = plan.job().servers();
  if (!plan.derived().takes_turns()) return servers.mode();
  return absl::StrCat(
      servers.mode(),
      servers.has_staleness() ? absl::StrCat(" by ", servers.staleness()) : "",
      ": each step is one replica's");
}

// "2 behind 6 replicas, sync", "1 behind 3 replicas, bounded by 4: each step is
// one replica's"; empty where there are none.
std::string ServersText(const Plan& plan) {
  const ParallelismSpec& parallelism = plan.job().parallelism();
  if (parallelism.servers() == 0) return "";
  const char* const each =
      parallelism.pipeline() > 1 ? " at each place of the pipeline" : "";
  return absl::StrCat("  servers          ", parallelism.servers(), " behind ",
                      parallelism.data(), " replicas", each, ", ",
                      ModeText(plan), "\n");
}

// "4 of 2 ranks each, which exchange every 100 steps"; empty where there are
// none.
std::string IslandsText(const Plan& plan) {
  if (!HasIslands(plan)) return "";
  const IslandsSpec& islands = plan.job().islands();
  const int ranks = RanksOfIsland(plan.mesh());
  std::string text =
      absl::StrCat("  islands          ", IslandsOf(plan.job().parallelism()),
                   " of ", ranks, ranks == 1 ? " rank" : " ranks",
                   " each, which exchange every ", islands.every(), " steps");
  if (islands.fragments() > 1) {
    absl::StrAppend(&text, " in ", islands.fragments(), " fragments");
  }
  if (islands.compress() != "none") {
    absl::StrAppend(&text, " as ", islands.compress());
  }
  const IslandsPrediction& predicted = plan.prediction().islands();
  if (predicted.every() == 0) return text + "\n";
  return absl::StrCat(
      text, "\n",
      absl::StrFormat("  exchanges        %s sent by a rank in %d steps (data "
                      "parallelism: %s); training waits %.3g s for them\n",
                      ReadableBytes(predicted.bytes_sent()), predicted.every(),
                      ReadableBytes(predicted.data_parallel_bytes()),
                      predicted.waited_seconds()));
}

}  // namespace

std::string ReplicasText(const Plan& plan) {
  return absl::StrCat(ServersText(plan), IslandsText(plan),
                      MicroBatchesText(plan), SlicesText(plan));
}

}  // namespace troupe
