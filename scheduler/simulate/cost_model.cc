#include "scheduler/simulate/cost_model.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "proto/base/check.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/batch.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/copies.h"
#include "proto/plan/find_program.h"
#include "proto/plan/groups.h"
#include "proto/plan/lanes.h"
#include "proto/plan/mesh.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "proto/plan/roles.h"
#include "proto/plan/slices.h"
#include "proto/plan/trained.h"
#include "scheduler/simulate/gpu_link.h"
#include "scheduler/simulate/links.h"
#include "scheduler/simulate/optimizer_work.h"
#include "scheduler/simulate/stand_ins.h"
#include "scheduler/simulate/tier_rates.h"

namespace troupe {
namespace {

// Of products on the host's cores, over the bytes that an optimizer moves there
// in the same time: of a worker on a GPU only the latter was measured.
constexpr double kHostFlopsPerByte = 10;

constexpr double kBytesOfF32 = 4;
// The calibration counts the masked half of the attention matrix, Work does
// not.
constexpr double kAttentionCountedInFull = 2;

struct HostLoad {
  int index = 0;  // among hosts, as they come
  int ranks = 0;
  int cores = 0;  // 0: the workers did not say
};

// Of the first attention; all have the same.
AttentionSize AttentionSizeOf(const Plan& plan) {
  for (const UnitTable& table : plan.tables()) {
    for (const Op& op : table.ops()) {
      const auto shape = AttentionShapeOf({table, op});
      if (!shape.has_value()) continue;
      return {.length = shape->length, .head_dim = shape->head_dim};
    }
  }
  return {.length = plan.job().training().sequence_length()};
}

// Elements of the optimizer's states that a KEEP or a SNAPSHOT reads.
int64_t SavedStates(const Plan& plan, const Placement& placement,
                    const Instruction& saves, int rank) {
  if (saves.kind() == Instruction::KEEP) {
    return LargestStateAtRest(plan, placement, rank);
  }
  return LargestStateDuty(plan, placement, saves.part(), rank);
}

}  // namespace

CostModel::CostModel(const Plan& plan,
                     const std::vector<WorkerDescription>& workers,
                     const LinkGain& gain)
    : plan_(plan), passes_(plan), gain_(gain) {
  const int ranks = MeshSize(plan.mesh());
  CHECK_GE(workers.size(), static_cast<size_t>(ranks));
  const absl::Span<const WorkerDescription> used =
      absl::MakeConstSpan(workers).first(ranks);
  seats_ = SeatsOf(used, LanesOnCores(plan));
  std::map<std::string, HostLoad> hosts;
  for (const WorkerDescription& worker : used) {
    const int index = static_cast<int>(hosts.size());
    HostLoad& host = hosts.try_emplace(worker.host(), HostLoad{.index = index})
                         .first->second;
    host.ranks += 1;
    host.cores = std::max(host.cores, worker.host_cores());
  }
  const bool tiers = UsesLowerTiers(plan);
  std::map<std::string, int> machines;
  const std::vector<int> stand_ins =
      StandIns(used, ComputeType(plan.job().training()));
  for (int r = 0; r < ranks; ++r) {
    const WorkerDescription& worker = used[r];
    const Calibration& measured = used[stand_ins[r]].calibration();
    const HostLoad& load = hosts.at(worker.host());
    // Links were measured between two ranks; more share the cores that copy.
    const int copying = std::max(2, load.cores);
    const bool crowded = load.cores > 0 && load.ranks > copying;
    const double share =
        crowded ? static_cast<double>(copying) / load.ranks : 1;
    const std::string look = absl::StrCat(
        measured.SerializeAsString(), "/", worker.gpu().link(), "/",
        NetworkOf(worker).SerializeAsString(), "/", worker.threads(), "/",
        share, "/", tiers ? absl::StrCat(load.ranks, "/", load.cores) : "");
    const auto [found, is_new] =
        machines.try_emplace(look, static_cast<int>(machines_.size()));
    if (is_new) {
      machines_.push_back(
          MachineOf(worker, measured, {.ranks = load.ranks, .share = share}));
    }
    machine_of_.push_back(found->second);
    peak_ += PeakOf(r, worker);
    host_of_.push_back(load.index);
  }
  if (hosts.size() > 1) {
    adapters_ = AdaptersOf(used, host_of_, gain_.between_hosts);
  }
  for (const Group& group : plan.groups()) {
    std::vector<std::vector<int>>& members =
        members_.emplace_back(GroupCount(plan.mesh(), group));
    const std::vector<int>& numbers =
        numbers_.emplace_back(GroupNumbers(plan.mesh(), group));
    for (int r = 0; r < ranks; ++r) {
      if (numbers[r] >= 0) members[numbers[r]].push_back(r);
    }
    std::vector<GroupLinks>& links = links_.emplace_back();
    auto& level_links = level_links_.emplace_back();
    for (size_t n = 0; n < members.size(); ++n) {
      const int number = static_cast<int>(n);
      links.push_back(LinksAmong(members[n], CarrierOf(group, number)));
      level_links.push_back(LevelLinksOf(group, number));
    }
    places_.push_back(PlacesIn(members));
    unlike_.push_back(UnlikeGroups(static_cast<int>(unlike_.size())));
  }
}

CostModel::Machine CostModel::MachineOf(const WorkerDescription& worker,
                                        const Calibration& measured,
                                        const Company& company) const {
  Machine machine;
  machine.measured = !measured.matmul().empty();
  machine.calibration = CompletedCalibration(measured);
  machine.scale = std::max(1.0, static_cast<double>(worker.threads())) /
                  machine.calibration.threads();
  machine.communication_share = company.share;
  machine.tiers = TierRatesOf(worker, machine.calibration,
                              {.scale = machine.scale, .ranks = company.ranks});
  machine.network = Times(NetworkOf(worker), gain_.between_hosts);
  machine.nccl =
      Times(NcclLinkOf(worker.gpu()).value_or(machine.calibration.loopback()),
            gain_.within_hosts);
  for (LinkRate* const link : {machine.calibration.mutable_loopback(),
                               machine.calibration.mutable_shared_memory()}) {
    *link = Times(*link, gain_.within_hosts);
  }
  machine.products = ProductRatesOf(plan_, machine.calibration);
  machine.attention =
      AttentionRateOf(machine.calibration, ComputeType(plan_.job().training()),
                      AttentionSizeOf(plan_));
  return machine;
}

bool CostModel::uses_default() const {
  return std::any_of(machines_.begin(), machines_.end(),
                     [](const Machine& machine) { return !machine.measured; });
}

RankTraits CostModel::Traits() const {
  RankTraits traits;
  const int ranks = static_cast<int>(machine_of_.size());
  const int stages = AxisSize(plan_.mesh(), "pipeline");
  // Of each rank its machine, how it is connected in its groups, which places
  // of its pipeline are on its host, and the cores and adapters that it shares.
  std::map<std::vector<int>, int> looks;
  const std::vector<bool> has_rings = HasRings();
  std::map<std::vector<double>, int> kinds_of_adapters;  // by their rates
  const auto share = [&](int rank, int what) {
    traits.shares.resize(ranks);
    traits.shares[rank].push_back(what);
  };
  for (int r = 0; r < ranks; ++r) {
    std::vector<int> look = {machine_of_[r]};
    if (!adapters_.of_rank.empty()) {
      std::vector<double> rates;
      for (const int adapter : adapters_.of_rank[r]) {
        rates.push_back(adapters_.rates[adapter]);
        share(r, static_cast<int>(seats_.processors.size()) + adapter);
      }
      look.push_back(
          kinds_of_adapters
              .try_emplace(rates, static_cast<int>(kinds_of_adapters.size()))
              .first->second);
    }
    for (size_t g = 0; g < places_.size(); ++g) {
      for (const int how : ConnectionOf(r, static_cast<int>(g), has_rings[g])) {
        look.push_back(how);
      }
    }
    for (int p = 0; p < stages; ++p) {
      const int peer = PeerRank(plan_.mesh(), r, p);
      if (host_of_[peer] == host_of_[r]) look.push_back(p);
    }
    const int processor = seats_.ranks[r].processor;
    if (processor != Seats::kOwn) {
      const double cores = seats_.processors[processor].cores;
      look.push_back(-1 - static_cast<int>(cores));
      share(r, processor);
    }
    traits.ranks.push_back(
        looks.try_emplace(look, static_cast<int>(looks.size())).first->second);
  }
  std::map<std::string, int> known;
  for (const std::vector<GroupLinks>& links : links_) {
    std::vector<int>& of_group = traits.groups.emplace_back();
    for (const GroupLinks& link : links) {
      of_group.push_back(
          known.try_emplace(LookOf(link), static_cast<int>(known.size()))
              .first->second);
    }
  }
  return traits;
}

// Of its own measurements where it has any, not of those that stand for them.
double CostModel::PeakOf(int rank, const WorkerDescription& worker) const {
  const ElementType type = ComputeType(plan_.job().training());
  const Machine& machine = At(rank);
  double best = BestProductRate(worker.calibration(), type);
  int threads = worker.calibration().threads();
  if (best == 0) {
    best = BestProductRate(machine.calibration, type);
    threads = machine.calibration.threads();
  }
  return best * std::max(1, worker.threads()) / threads *
         seats_.FairShare(rank);
}

Cost CostModel::PassCost(const Machine& machine,
                         const Instruction& instruction) const {
  const int unit = instruction.unit();
  const Instruction::Kind kind = instruction.kind();
  const Work& work = passes_.Of(unit, kind).at(instruction.segment()).work;
  const Calibration& calibration = machine.calibration;
  // What is half as wide is read and written alike.
  const bool narrow = ComputeType(plan_.job().training()) != F32;
  const double memory = narrow ? calibration.memory_bf16_bytes_per_second()
                               : calibration.memory_bytes_per_second();
  const double elements = narrow ? calibration.elementwise_bf16_ops_per_second()
                                 : calibration.elementwise_ops_per_second();
  const ProductRates& products = machine.products[unit];
  const auto cost = [&](double product, double attention) {
    return Cost{.matmul = work.matmul_flops() / (product * machine.scale),
                .attention = kAttentionCountedInFull * work.attention_flops() /
                             (attention * machine.scale),
                .elementwise = (work.memory_bytes() / memory +
                                work.elementwise_ops() / elements) /
                               machine.scale,
                .waiting = work.wait_seconds()};
  };
  const auto& [forward, backward] = machine.attention;
  if (kind == Instruction::FORWARD || kind == Instruction::RECOMPUTE) {
    return cost(products.forward, forward);
  }
  if (kind == Instruction::BACKWARD_INPUT) {
    return cost(products.backward_input, backward);
  }
  return cost(products.backward_weight, backward);
}

double CostModel::UnitSeconds(int rank, int unit) const {
  const Machine& machine = At(rank);
  const double overhead = machine.calibration.instruction_overhead_us() * 1e-6;
  double seconds = 0;
  double waiting = 0;
  Instruction pass;
  pass.set_unit(unit);
  for (const Instruction::Kind kind : kUnitPasses) {
    pass.set_kind(kind);
    const auto& segments = passes_.Of(unit, kind);
    for (size_t s = 0; s < segments.size(); ++s) {
      if (!segments[s].use.works) continue;
      pass.set_segment(static_cast<int>(s));
      const Cost cost = PassCost(machine, pass);
      waiting += cost.waiting;
      seconds += cost.waiting > 0 ? 0 : cost.total() + overhead;
    }
  }
  return waiting + seconds / seats_.FairShare(rank);
}

Cost CostModel::StateCost(int rank, const Instruction& instruction) const {
  const Machine& machine = At(rank);
  const TrainingSpec& training = plan_.job().training();
  const double memory =
      machine.calibration.memory_bytes_per_second() * machine.scale;
  Cost cost;
  if (instruction.kind() == Instruction::LOAD_BATCH) {
    cost.elementwise = static_cast<double>(BatchBytes(plan_)) / memory;
    return cost;
  }
  const Placement& placement =
      *FindPlacement(RoleOf(plan_, rank), instruction.unit());
  const int64_t elements =
      instruction.kind() == Instruction::STEP
          ? LargestTrainedAtRest(plan_, placement, rank)
          : LargestDuty(plan_, placement, instruction.part(), rank);
  const double bytes = kBytesOfF32 * static_cast<double>(elements);
  const double gradients =  // their size, of one of f32
      static_cast<double>(
          BytesOfElement(GradientsType(plan_.units(instruction.unit())))) /
      kBytesOfF32;
  const bool on_host =
      KindOfLane(plan_.lanes(), instruction.lane()) == Lane::HOST;
  if (instruction.kind() == Instruction::GRAD_NORM) {
    cost.elementwise =
        gradients * bytes / (on_host ? machine.tiers.optimizer : memory);
  } else if (instruction.kind() == Instruction::STEP) {
    // Weights, gradients and moments are each read and written; where the
    // model computes with a copy half as large, that is written too.
    const double copy = HasMasterWeights(training) ? 0.5 : 0;
    // For each element, on the average; those of islands are not touched.
    const double moments =
        static_cast<double>(LargestStateAtRest(plan_, placement, rank)) /
            static_cast<double>(std::max<int64_t>(1, elements)) -
        OuterStates(plan_.job().optimizer());
    cost.optimizer =
        (2 * (1 + gradients + moments) + copy +
         ShareReadAgain(plan_, plan_.units(instruction.unit())) *
             (1 + 3 * gradients)) *
        bytes /
        (on_host ? machine.tiers.optimizer
                 : machine.calibration.optimizer_bytes_per_second() *
                       machine.scale);
    double products =
        machine.calibration.matmul(0).flops_per_second() * machine.scale;
    if (on_host) {
      products =
          std::min(products, kHostFlopsPerByte * machine.tiers.optimizer);
    }
    cost.matmul = MatrixStepFlops(plan_, placement, rank) / products;
  }
  return cost;
}

// A copy has the rate of the tier where its part of the state rests; without
// one, all that is saved passes through the checkpoint's disk, too.
Cost CostModel::SnapshotCost(int rank, const Instruction& snapshot) const {
  const TierRates& tiers = At(rank).tiers;
  const Role& role = RoleOf(plan_, rank);
  const Placement& placement = *FindPlacement(role, snapshot.unit());
  const bool keeps = snapshot.kind() == Instruction::KEEP;
  const Program& program =
      *FindProgram(role, keeps ? Program::KEEP : Program::CHECKPOINT);
  const bool frozen =
      !keeps && plan_.units(snapshot.unit()).parts(snapshot.part()).frozen();
  const double bytes =
      kBytesOfF32 *
      static_cast<double>(
          keeps ? LargestTrainedAtRest(plan_, placement, rank)
                : LargestDuty(plan_, placement, snapshot.part(), rank));
  const bool copied = keeps || plan_.job().checkpoint().background();
  // Written from where it rests, while training continues.
  if (frozen && copied) return {};
  Cost cost;
  for (const Instruction::Operand& operand : snapshot.operands()) {
    if (operand.part() == Instruction::COPY) continue;
    double read = bytes;
    if (operand.part() == Instruction::MOMENTS) {
      read = kBytesOfF32 *
             static_cast<double>(SavedStates(plan_, placement, snapshot, rank));
    }
    if (keeps && operand.part() == Instruction::WEIGHTS) {
      const TrainingSpec& training = plan_.job().training();
      read = HasMasterWeights(training) ? 0 : bytes;
      read += static_cast<double>(
          LargestFrozenAtRest(plan_, placement, rank) *
          BytesOfElement(ParametersType(plan_.units(snapshot.unit()))));
    }
    if (TierOf(program.buffers(operand.buffer())) == NVME) {
      cost.elementwise += tiers.nvme_reads.SecondsOf(read);
    } else if (copied) {
      cost.elementwise += read / tiers.copies;
    }
    if (!copied) cost.elementwise += read / tiers.checkpoint;
  }
  return cost;
}

Cost CostModel::MoveCost(const Machine& machine,
                         const Instruction& move) const {
  const bool disk = KindOfLane(plan_.lanes(), move.lane()) == Lane::IO;
  // Nothing is used on a disk: what is fetched comes from there.
  const bool reads = move.kind() == Instruction::FETCH;
  const TierRates& tiers = machine.tiers;
  const int64_t bytes = move.operands(0).bytes();
  if (!disk) return {.moving = static_cast<double>(bytes) / tiers.copies};
  const DiskRate& rate = reads ? tiers.nvme_reads : tiers.nvme_writes;
  // It moves whole blocks.
  const auto blocks = static_cast<double>(TierAligned(bytes, NVME));
  return {.moving = rate.SecondsOf(blocks)};
}

// Bytes of gradients that are zeroed before a pass adds to them, or are touched
// once more where they are scattered.
int64_t CostModel::GradientBytes(int rank,
                                 const Instruction& instruction) const {
  const Unit& unit = plan_.units(instruction.unit());
  int64_t elements = 0;
  if (instruction.kind() == Instruction::SCATTER_GRADS) {
    const Placement& placement =
        *FindPlacement(RoleOf(plan_, rank), instruction.unit());
    for (const Stretch& stretch : StretchesWith(
             plan_, placement, instruction.part(), DealtParts::kTrained)) {
      const int64_t slice = LargestAtRest(plan_, stretch, rank);
      // Added to the slice, or zeros around it.
      elements += instruction.has_micro_batch() ? 3 * slice
                                                : stretch.all.size() - slice;
    }
  }
  // What is dealt may be in another buffer than what is not: counted once.
  bool own = false;
  bool tied = false;
  for (const Instruction::Operand& operand : instruction.operands()) {
    if (operand.access() != Instruction::WRITE) continue;
    own |= operand.part() == Instruction::WEIGHT_GRADIENTS;
    tied |= operand.part() == Instruction::TIED_GRADIENTS;
  }
  if (own) elements += TrainedElements(unit);
  if (tied) elements += TrainedElements(plan_.units(unit.tied(0).unit()));
  return elements * BytesOfElement(GradientsType(unit));
}

Cost CostModel::CostOf(int rank, const Instruction& instruction) const {
  const Machine& at = At(rank);
  Cost cost;
  switch (instruction.kind()) {
    case Instruction::FORWARD:
    case Instruction::RECOMPUTE:
    case Instruction::BACKWARD_INPUT:
    case Instruction::BACKWARD_WEIGHT:
      cost = PassCost(at, instruction);
      break;
    case Instruction::REDUCE_GRADS:
    case Instruction::REDUCE_SCALARS:
    case Instruction::SCATTER_GRADS:
    case Instruction::GATHER_PARAMETERS:
    case Instruction::EXCHANGE:
    case Instruction::MIRROR:
      cost = CollectiveCost(rank, instruction);
      break;
    case Instruction::PUSH:
    case Instruction::PULL:
      cost = ServedCost(rank, instruction);
      break;
    case Instruction::CLAIM:
    case Instruction::DELIVER:
    case Instruction::ADMIT:
      cost = TurnCost(rank, instruction);
      break;
    case Instruction::SEND:
    case Instruction::RECV:
      cost = TransferCost(rank, instruction);
      break;
    case Instruction::OUTER_GRADIENT:
    case Instruction::OUTER_REDUCE:
    case Instruction::OUTER_STEP:
      cost = OuterCost(rank, instruction);
      break;
    case Instruction::LOAD_BATCH:
    case Instruction::GRAD_NORM:
    case Instruction::STEP:
      cost = StateCost(rank, instruction);
      break;
    case Instruction::SNAPSHOT:
    case Instruction::KEEP:
      cost = SnapshotCost(rank, instruction);
      break;
    case Instruction::FETCH:
    case Instruction::EVICT:
      cost = MoveCost(at, instruction);
      break;
    default:
      CHECK(false) << "no cost known for "
                   << Instruction::Kind_Name(instruction.kind());
  }
  if (instruction.kind() == Instruction::BACKWARD_WEIGHT ||
      instruction.kind() == Instruction::SCATTER_GRADS) {
    cost.elementwise += static_cast<double>(GradientBytes(rank, instruction)) /
                        (at.calibration.memory_bytes_per_second() * at.scale);
  }
  // A given time is all that a synthetic unit takes.
  if (cost.waiting == 0) {
    cost.overhead = at.calibration.instruction_overhead_us() * 1e-6;
  }
  return Counted(cost, instruction);
}

}  // namespace troupe
