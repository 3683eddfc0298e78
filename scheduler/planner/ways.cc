#include "scheduler/planner/ways.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "proto/base/check.h"
#include "proto/plan/axes.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/resolve_micro_batches.h"

namespace troupe {
namespace {

// How the ranks of a stage lie along the axes of the mesh.
struct Shares {
  int data = 1;
  int expert = 1;  // of data
  int context = 1;
  int tensor = 1;
  bool sequence_parallel = false;
  std::string tensor_method;  // where it is not 1d
  int tensor_depth = 0;       // 2.5d
  std::string context_method;
  int ulysses_size = 0;
  bool operator==(const Shares&) const = default;

  int Axes() const { return (data > 1) + (context > 1) + (tensor > 1); }
};

std::string MethodBut1D(const ParallelismSpec& parallelism) {
  const absl::string_view method = TensorMethodOf(parallelism);
  return method == "1d" ? "" : std::string(method);
}

Shares SharesOf(const ParallelismSpec& parallelism) {
  return {.data = parallelism.data(),
          .expert = parallelism.expert(),
          .context = parallelism.context(),
          .tensor = parallelism.tensor(),
          .sequence_parallel = parallelism.sequence_parallel(),
          .tensor_method = MethodBut1D(parallelism),
          .tensor_depth = parallelism.tensor_depth(),
          .context_method = parallelism.context_method(),
          .ulysses_size = parallelism.ulysses_size()};
}

// With each method for context, and each of these for tensor.
void AddMethods(Shares shares, std::vector<Shares>& all) {
  if (shares.context == 1) {
    all.push_back(shares);
    return;
  }
  for (const char* const method : {"ulysses", "ring"}) {
    shares.context_method = method;
    all.push_back(shares);
  }
  shares.context_method = "usp";
  for (int size = 2; size < shares.context; ++size) {
    if (shares.context % size != 0) continue;
    shares.ulysses_size = size;
    all.push_back(shares);
  }
}

// Squares of ranks, layers of them, and cubes.
void AddBlocks(Shares shares, std::vector<Shares>& all) {
  shares.tensor_method = "2d";
  if (IsPower(shares.tensor, 2)) AddMethods(shares, all);
  shares.tensor_method = "3d";
  if (IsPower(shares.tensor, 3)) AddMethods(shares, all);
  shares.tensor_method = "2.5d";
  for (const int depth : DepthsOf(shares.tensor)) {
    shares.tensor_depth = depth;
    AddMethods(shares, all);
  }
}

// `experts`: of a layer, which as many ranks as can share them may have; 0: it
// has none.
std::vector<Shares> AllShares(int ranks, int experts) {
  std::vector<Shares> all;
  for (int data = ranks; data >= 1; --data) {
    if (ranks % data != 0) continue;
    for (int tensor = 1; tensor <= ranks / data; ++tensor) {
      if (ranks / data % tensor != 0) continue;
      Shares shares = {.data = data,
                       .context = ranks / data / tensor,
                       .tensor = tensor,
                       .tensor_method = "",
                       .context_method = ""};
      const int sharing = experts > 0 ? std::gcd(data, experts) : 1;
      for (const bool sequence : {false, true}) {
        if (sequence && tensor == 1) continue;
        shares.sequence_parallel = sequence;
        shares.expert = 1;
        AddMethods(shares, all);
        shares.expert = sharing;
        if (sharing > 1) AddMethods(shares, all);
      }
      shares.expert = 1;
      shares.sequence_parallel = false;
      if (tensor > 1) AddBlocks(shares, all);
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Shares& a, const Shares& b) {
                     return std::make_pair(a.ulysses_size > 0, a.Axes()) <
                            std::make_pair(b.ulysses_size > 0, b.Axes());
                   });
  return all;
}

void SetZero(int zero, const ParallelismSpec& asked, JobSpec& way) {
  ParallelismSpec& parallelism = *way.mutable_parallelism();
  parallelism.set_zero(zero);
  parallelism.clear_zero_size();
  parallelism.clear_reshard_after_forward();
  if (zero == 0) return;
  if (zero == 3 && asked.has_reshard_after_forward()) {
    parallelism.set_reshard_after_forward(asked.reshard_after_forward());
  }
  if (!asked.has_zero_size()) return;
  parallelism.set_zero_size(asked.zero_size());
  if (!ResolveJob(way).ok()) parallelism.clear_zero_size();
}

// Nothing is dealt over one rank, and with 3D what rests in slices anyway only
// together with all else.
int LevelFor(const Shares& shares, int zero) {
  if (shares.data * shares.context == 1) return 0;
  return zero > 0 && shares.tensor_method == "3d" ? 3 : zero;
}

JobSpec WithShares(const JobSpec& resolved, const Shares& shares) {
  JobSpec way = resolved;
  ParallelismSpec& parallelism = *way.mutable_parallelism();
  if (shares != SharesOf(parallelism)) {
    parallelism.clear_strategies();
    parallelism.clear_batch();
  }
  parallelism.set_data(shares.data);
  parallelism.set_context(shares.context);
  parallelism.set_tensor(shares.tensor);
  parallelism.set_sequence_parallel(shares.sequence_parallel);
  parallelism.clear_tensor_method();
  parallelism.clear_tensor_depth();
  parallelism.clear_context_method();
  parallelism.clear_ulysses_size();
  if (shares.data != resolved.parallelism().data() ||
      shares.expert != parallelism.expert()) {
    ClearMicroBatches(way);
  }
  if (shares.expert != parallelism.expert()) parallelism.clear_expert_slack();
  parallelism.set_expert(shares.expert);
  way.mutable_memory()->clear_unsharded_bytes();
  if (!shares.tensor_method.empty()) {
    parallelism.set_tensor_method(shares.tensor_method);
  }
  if (shares.tensor_depth > 0) {
    parallelism.set_tensor_depth(shares.tensor_depth);
  }
  if (shares.context > 1) {
    parallelism.set_context_method(shares.context_method);
  }
  if (shares.ulysses_size > 1) {
    parallelism.set_ulysses_size(shares.ulysses_size);
  }
  FitMicroBatch(way);
  return way;
}

}  // namespace

void FitExperts(JobSpec& way) {
  ParallelismSpec& parallelism = *way.mutable_parallelism();
  if (parallelism.expert() <= 1) return;
  const int ranks = std::gcd(parallelism.expert(), parallelism.data());
  if (ranks == parallelism.expert()) return;
  parallelism.clear_expert_slack();
  parallelism.set_expert(ranks);
}

void FitMicroBatch(JobSpec& way) {
  TrainingSpec& training = *way.mutable_training();
  const ParallelismSpec& parallelism = way.parallelism();
  if (!parallelism.micro_batches().empty()) return;  // numbers of these
  const int global = training.global_batch_size();
  const int replica_batch = global / parallelism.data();
  if (replica_batch == 0) return;
  int size = std::min(training.micro_batch_size(), replica_batch);
  if (parallelism.micro_batch_split() == kSplitBySpeed) {
    while (global % size != 0) --size;
  } else if (global % parallelism.data() == 0) {
    while (replica_batch % size != 0) --size;
  } else {
    return;
  }
  training.set_micro_batch_size(size);
}

void ClearMicroBatches(JobSpec& way) {
  way.mutable_parallelism()->clear_micro_batches();
  way.mutable_parallelism()->clear_micro_batch_split();
}

std::vector<JobSpec> WaysToShare(const JobSpec& job) {
  const absl::StatusOr<JobSpec> resolved = ResolveJob(job);
  CHECK_OK(resolved.status());
  const ParallelismSpec& now = resolved->parallelism();
  const Shares as_it_is = SharesOf(now);
  const int ranks = now.data() * now.batch() * now.context() * now.tensor();
  const Shares only_data = {
      .data = ranks, .tensor_method = "", .context_method = ""};
  std::vector<JobSpec> ways = {job};
  const auto add = [&](const Shares& shares, int zero) {
    JobSpec way = WithShares(*resolved, shares);
    SetZero(zero, job.parallelism(), way);
    ways.push_back(std::move(way));
  };
  for (int zero = 0; zero <= 3; ++zero) {
    if (zero == now.zero()) continue;
    if (LevelFor(as_it_is, zero) == zero) add(as_it_is, zero);
    if (ranks > 1 && as_it_is != only_data) add(only_data, zero);
  }
  for (const Shares& shares :
       AllShares(ranks, resolved->model().num_experts())) {
    if (shares == as_it_is) continue;
    add(shares, LevelFor(shares, now.zero()));
  }
  return ways;
}

WayFields FieldsOfWay(const JobSpec& way, const JobSpec& job) {
  WayFields fields;
  const ParallelismSpec& now = way.parallelism();
  ParallelismSpec& needed = *fields.mutable_parallelism();
  if (now.data() > 1) needed.set_data(now.data());
  if (now.expert() > 1) needed.set_expert(now.expert());
  if (now.expert() > 1 && now.expert_slack() < now.expert()) {
    needed.set_expert_slack(now.expert_slack());
  }
  if (now.context() > 1) {
    needed.set_context(now.context());
    needed.set_context_method(now.context_method());
  }
  if (now.ulysses_size() > 1) needed.set_ulysses_size(now.ulysses_size());
  if (now.tensor() > 1) needed.set_tensor(now.tensor());
  if (now.sequence_parallel()) needed.set_sequence_parallel(true);
  if (TensorMethodOf(now) != "1d") {
    needed.set_tensor_method(std::string(TensorMethodOf(now)));
  }
  if (now.tensor_depth() > 1) needed.set_tensor_depth(now.tensor_depth());
  if (now.zero() > 0) needed.set_zero(now.zero());
  const int dealt_most = now.data() * now.context();
  if (now.zero() > 0 && now.has_zero_size() && now.zero_size() < dealt_most) {
    needed.set_zero_size(now.zero_size());
  }
  const int micro_batch = way.training().micro_batch_size();
  if (micro_batch != job.training().micro_batch_size()) {
    fields.set_micro_batch_size(micro_batch);
  }
  return fields;
}

}  // namespace troupe
