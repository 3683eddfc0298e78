#include "scheduler/simulate/cost_model.h"

#include <algorithm>
#include <map>
#include <string>

#include "proto/base/check.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/precision.h"
#include "scheduler/simulate/gpu_link.h"

namespace troupe {
namespace {

constexpr double kBytesOfF32 = 4;
// The calibration counts the masked half of the attention matrix, Work does
// not.
constexpr double kAttentionCountedInFull = 2;
// A disk that a checkpoint may meet.
constexpr double kSnapshotBytesPerSecond = 5e8;
// Between hosts, where nothing measured the link: 10 Gbit/s Ethernet.
constexpr double kNetworkLatencyUs = 30;
constexpr double kNetworkBytesPerSecond = 1.1e9;

struct HostLoad {
  int ranks = 0;
  int cores = 0;  // 0: the workers did not say
};

// Of the first attention; all have the same.
AttentionSize AttentionSizeOf(const Plan& plan) {
  for (const UnitTable& table : plan.tables()) {
    for (const Op& op : table.ops()) {
      if (op.kind() != Op::ATTENTION) continue;
      const AttentionShape shape = AttentionShapeOf({table, op});
      return {.length = shape.length, .head_dim = shape.head_dim};
    }
  }
  return {.length = plan.job().training().sequence_length()};
}

LinkRate NetworkOf(const WorkerDescription& worker) {
  if (worker.network().bytes_per_second() > 0) return worker.network();
  LinkRate network;
  network.set_latency_us(kNetworkLatencyUs);
  network.set_bytes_per_second(kNetworkBytesPerSecond);
  return network;
}

// Bytes a second of a checkpoint's state, to the host or straight to a disk.
double SnapshotRate(const Calibration& calibration, bool copied,
                    double memory) {
  const double measured = copied ? calibration.host_bytes_per_second()
                                 : calibration.nvme_bytes_per_second();
  if (measured > 0) return measured;
  return copied ? memory / 2 : kSnapshotBytesPerSecond;
}

// The same bytes over `rails` such links at once.
LinkRate Times(LinkRate link, double rails) {
  link.set_bytes_per_second(link.bytes_per_second() * rails);
  return link;
}

}  // namespace

CostModel::CostModel(const Plan& plan,
                     const std::vector<WorkerDescription>& workers)
    : plan_(plan), passes_(plan) {
  CHECK_GE(workers.size(), static_cast<size_t>(plan.ranks_size()));
  const std::vector<WorkerDescription> used(
      workers.begin(), workers.begin() + plan.ranks_size());
  seats_ = SeatsOf(used);
  std::map<std::string, HostLoad> hosts;
  for (const WorkerDescription& worker : used) {
    HostLoad& host = hosts[worker.host()];
    host.ranks += 1;
    host.cores = std::max(host.cores, worker.host_cores());
  }
  for (const WorkerDescription& worker : used) {
    const HostLoad& load = hosts[worker.host()];
    Rank& rank = ranks_.emplace_back();
    rank.host = worker.host();
    uses_default_ |= worker.calibration().matmul().empty();
    rank.calibration = CompletedCalibration(worker.calibration());
    rank.scale = std::max(1.0, static_cast<double>(worker.threads())) /
                 rank.calibration.threads();
    // Links were measured between two ranks; more share the cores that copy.
    const int copying = std::max(2, load.cores);
    if (load.cores > 0 && load.ranks > copying) {
      rank.communication_share = static_cast<double>(copying) / load.ranks;
    }
    rank.network = NetworkOf(worker);
    rank.nccl = NcclLinkOf(worker.gpu()).value_or(rank.calibration.loopback());
    rank.products = ProductRatesOf(plan, rank.calibration);
    rank.attention =
        AttentionRateOf(rank.calibration, ComputeType(plan.job().training()),
                        AttentionSizeOf(plan));
  }
  for (const Group& group : plan.groups()) {
    links_.push_back(SlowestLinkOf(group));
  }
}

double CostModel::PeakFlopsPerSecond() const {
  double peak = 0;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    double best = 0;
    for (const MatmulRate& rate : rank.calibration.matmul()) {
      if (rate.dtype() != ComputeType(plan_.job().training())) continue;
      best = std::max(best, rate.flops_per_second());
    }
    peak += best * rank.scale * seats_.FairShare(static_cast<int>(r));
  }
  return peak;
}

Cost CostModel::PassCost(const Rank& rank,
                         const Instruction& instruction) const {
  const int unit = instruction.unit();
  const Instruction::Kind kind = instruction.kind();
  const Work& work = passes_.Of(unit, kind).at(instruction.segment()).work;
  const Calibration& calibration = rank.calibration;
  const bool bf16 = ComputeType(plan_.job().training()) == BF16;
  const double memory = bf16 ? calibration.memory_bf16_bytes_per_second()
                             : calibration.memory_bytes_per_second();
  const double elements = bf16 ? calibration.elementwise_bf16_ops_per_second()
                               : calibration.elementwise_ops_per_second();
  const ProductRates& products = rank.products[unit];
  const auto cost = [&](double product, double attention) {
    return Cost{.matmul = work.matmul_flops() / (product * rank.scale),
                .attention = kAttentionCountedInFull * work.attention_flops() /
                             (attention * rank.scale),
                .elementwise = (work.memory_bytes() / memory +
                                work.elementwise_ops() / elements) /
                               rank.scale,
                .waiting = work.wait_seconds()};
  };
  const auto& [forward, backward] = rank.attention;
  if (kind == Instruction::FORWARD) {
    return cost(products.forward, forward);
  }
  if (kind == Instruction::BACKWARD_INPUT) {
    return cost(products.backward_input, backward);
  }
  return cost(products.backward_weight, backward);
}

Cost CostModel::StateCost(const Rank& rank,
                          const Instruction& instruction) const {
  const TrainingSpec& training = plan_.job().training();
  const double memory = rank.calibration.memory_bytes_per_second() * rank.scale;
  Cost cost;
  if (instruction.kind() == Instruction::LOAD_BATCH) {
    cost.elementwise = 2.0 * kBytesOfF32 * training.micro_batch_size() *
                       training.sequence_length() / memory;
    return cost;
  }
  const double bytes =
      kBytesOfF32 *
      static_cast<double>(plan_.units(instruction.unit()).flat_elements());
  const double moments = OptimizerMoments(plan_.job().optimizer());
  if (instruction.kind() == Instruction::GRAD_NORM) {
    cost.elementwise = bytes / memory;
  } else if (instruction.kind() == Instruction::STEP) {
    // Weights, gradients and moments are each read and written; in bf16 a
    // copy half as large is written too.
    const double copy = HasMasterWeights(training) ? 0.5 : 0;
    cost.optimizer =
        (2 * (2 + moments) + copy) * bytes /
        (rank.calibration.optimizer_bytes_per_second() * rank.scale);
  } else if (instruction.kind() == Instruction::SNAPSHOT) {
    const bool copied = plan_.job().checkpoint().background();
    cost.elementwise =
        (1 + moments) * bytes / SnapshotRate(rank.calibration, copied, memory);
  }
  return cost;
}

// Between ranks of one host.
const LinkRate& CostModel::LocalLink(int rank, const Group& group) const {
  if (group.backend() == "nccl") return ranks_[rank].nccl;
  const Calibration& calibration = ranks_[rank].calibration;
  return group.backend() == "shared_memory" ? calibration.shared_memory()
                                            : calibration.loopback();
}

LinkRate CostModel::SlowestLinkOf(const Group& group) const {
  LinkRate local = LocalLink(group.ranks(0), group);
  LinkRate network = ranks_[group.ranks(0)].network;
  double share = 1;
  std::map<std::string, int> members;  // by host
  for (const int rank : group.ranks()) {
    share = std::min(share, ranks_[rank].communication_share);
    local = Slower(local, LocalLink(rank, group));
    network = Slower(network, ranks_[rank].network);
    ++members[ranks_[rank].host];
  }
  if (members.size() <= 1) return Times(local, share);
  int fewest = group.ranks_size();
  int most = 0;
  for (const auto& [host, count] : members) {
    fewest = std::min(fewest, count);
    most = std::max(most, count);
  }
  if (group.backend() == "nccl") network = Times(network, fewest);
  return Times(most > 1 ? Slower(network, local) : network, share);
}

Cost CostModel::TransferCost(int rank, const Instruction& instruction) const {
  const Group& group = plan_.groups(instruction.group());
  const int peer = instruction.peer();
  const Rank& a = ranks_.at(rank);
  const Rank& b = ranks_.at(peer);
  const LinkRate link =
      a.host == b.host ? Slower(LocalLink(rank, group), LocalLink(peer, group))
                       : Slower(a.network, b.network);
  Cost cost;
  cost.communication = TransferSeconds(link, TransferBytes(plan_, instruction));
  return cost;
}

Cost CostModel::CollectiveCost(const Instruction& instruction) const {
  Cost cost;
  cost.communication = CollectiveSeconds(
      links_[instruction.group()],
      {.bytes = CollectiveBytes(plan_, instruction),
       .ranks = plan_.groups(instruction.group()).ranks_size(),
       .collective = CollectiveOf(instruction)});
  return cost;
}

Cost CostModel::CostOf(int rank, const Instruction& instruction) const {
  const Rank& at = ranks_.at(rank);
  Cost cost;
  switch (instruction.kind()) {
    case Instruction::FORWARD:
    case Instruction::BACKWARD_INPUT:
    case Instruction::BACKWARD_WEIGHT:
      cost = PassCost(at, instruction);
      break;
    case Instruction::REDUCE_GRADS:
    case Instruction::REDUCE_SCALARS:
    case Instruction::EXCHANGE:
      cost = CollectiveCost(instruction);
      break;
    case Instruction::SEND:
    case Instruction::RECV:
      cost = TransferCost(rank, instruction);
      break;
    case Instruction::LOAD_BATCH:
    case Instruction::GRAD_NORM:
    case Instruction::STEP:
    case Instruction::SNAPSHOT:
      cost = StateCost(at, instruction);
      break;
    default:
      CHECK(false) << "no cost known for "
                   << Instruction::Kind_Name(instruction.kind());
  }
  // A given time is all that a synthetic unit takes.
  if (cost.waiting == 0) {
    cost.overhead = at.calibration.instruction_overhead_us() * 1e-6;
  }
  return cost;
}

int64_t CollectiveBytes(const Plan& plan, const Instruction& instruction) {
  constexpr int64_t kScalarsBytes = 5 * 8;
  if (instruction.kind() == Instruction::REDUCE_SCALARS) return kScalarsBytes;
  if (instruction.kind() == Instruction::EXCHANGE) {
    int64_t bytes = 0;
    for (const Instruction::Operand& operand : instruction.operands()) {
      bytes = std::max(bytes, operand.bytes());
    }
    return bytes;
  }
  if (instruction.kind() != Instruction::REDUCE_GRADS) return 0;
  int64_t elements = 0;
  for (int i = 0; i < std::max(1, instruction.unit_count()); ++i) {
    const Unit& unit = plan.units(instruction.unit() + i);
    elements += unit.parts(instruction.part()).elements();
  }
  return elements * static_cast<int64_t>(kBytesOfF32);
}

Collective CollectiveOf(const Instruction& instruction) {
  return instruction.kind() == Instruction::EXCHANGE
             ? instruction.exchange().collective()
             : ALL_REDUCE;
}

int64_t TransferBytes(const Plan& plan, const Instruction& instruction) {
  const bool transfer = instruction.kind() == Instruction::SEND ||
                        instruction.kind() == Instruction::RECV;
  return transfer ? plan.units(instruction.unit()).activation_bytes() : 0;
}

}  // namespace troupe
