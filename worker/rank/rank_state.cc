#include "worker/rank/rank_state.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ops/cpu/device.h"
#include "proto/base/check.h"
#include "proto/base/cores.h"
#include "proto/base/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/batch.h"
#include "proto/plan/data_files.h"
#include "proto/plan/find_program.h"
#include "proto/plan/lanes.h"
#include "proto/plan/mesh.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "proto/plan/replica_share.h"
#include "proto/plan/roles.h"
#include "worker/layers/element_dtype.h"
#include "worker/model/build_units.h"

namespace troupe {
namespace {

// Where the device is none of the host, one of its cores for the lanes that
// use those. A CPU device serves each thread with a pool of the thread's own.
std::unique_ptr<Device> HostBeside(const Device& device, int threads) {
  if (device.has_host_memory()) return nullptr;
  return NewCpuDevice({.threads = threads > 0 ? threads : UsableCoreCount()});
}

}  // namespace

namespace {

// A job that evaluates takes all windows, and no step without any.
absl::Status CheckEvaluatesAll(const JobSpec& job, const SampleReader& data) {
  if (!job.evaluate()) return absl::OkStatus();
  const int64_t batch = job.training().global_batch_size();
  if (batch < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("training.global_batch_size: ", batch,
                     " is out of range; use 1 or more"));
  }
  const auto windows = static_cast<int64_t>(data.validation_windows());
  const int64_t steps = (windows + batch - 1) / batch;
  if (job.training().steps() == steps) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "training.steps: ", job.training().steps(), ", but ",
      job.data().validation(), " has ", windows, " windows of ",
      job.training().sequence_length(), " tokens, ", steps,
      " steps of training.global_batch_size ", batch,
      "; leave it out: `troupe` counts them. If it did, the file is another "
      "one here than where the job was submitted"));
}

}  // namespace

absl::StatusOr<SampleReader> OpenData(const JobSpec& job) {
  SampleReaderOptions options = {
      .validation = job.data().validation(),
      .sequence_length =
          static_cast<uint64_t>(job.training().sequence_length()),
      .validation_fraction = job.data().validation_fraction(),
      .validation_blocks =
          static_cast<uint64_t>(std::max(1, job.data().validation_blocks())),
      .seed = job.training().seed(),
      .vocab_size = static_cast<uint64_t>(job.model().vocab_size()),
      .isolate_documents = job.data().isolate_documents()};
  for (DataFileField& file : TrainingFiles(job.data())) {
    options.sources.push_back({std::move(file.path), file.weight});
  }
  ASSIGN_OR_RETURN(SampleReader data, SampleReader::Create(options));
  for (const TokenFile* const file : data.files()) {
    RETURN_IF_ERROR(
        CheckVocabulary(file->layout(), file->path(), job.model()));
  }
  RETURN_IF_ERROR(CheckEvaluatesAll(job, data));
  return data;
}

absl::Status CheckVocabulary(const TokenLayout& tokens, const std::string& path,
                             const ModelSpec& model) {
  // What a file of another format holds is seen when it is read.
  if (static_cast<int64_t>(tokens.vocab_size) <= model.vocab_size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("model.vocab_size: ", model.vocab_size(), ", but ", path,
                   " holds tokens of a vocabulary of ", tokens.vocab_size));
}

std::string TokensOf(const JobSpec& job,
                     const absl::optional<SampleReader>& data) {
  if (data.has_value() && !data->tokenizer_path().empty()) {
    return data->tokenizer_path();
  }
  const std::vector<DataFileField> files = TrainingFiles(job.data());
  return files.empty() ? "" : files[0].path;
}

RankState::RankState(std::shared_ptr<const Plan> plan_in, Device& device_in,
                     RankMemory memory_in, const DiskLog& disk_in,
                     std::vector<std::unique_ptr<ModelUnit>> units_in,
                     absl::optional<SampleReader> data_in, int host_threads)
    : plan(std::move(plan_in)),
      device(device_in),
      own_host(HostBeside(device, host_threads)),
      host(own_host == nullptr ? device : *own_host),
      memory(std::move(memory_in)),
      disk(disk_in),
      units(std::move(units_in)),
      optimizer(plan->job().optimizer()),
      data(std::move(data_in)),
      loss_scale(plan->job().training()) {
  for (int lane = 0; lane < plan->lanes_size(); ++lane) {
    ports.push_back(std::make_unique<TierPort>(device, &memory, &disk));
  }
}

absl::StatusOr<std::unique_ptr<RankState>> RankState::Create(
    std::shared_ptr<const Plan> plan, Device& device, const TierArenas& arenas,
    const DiskLog& disk, KeptMemory kept, const UnitsBuilder& build_units,
    int host_threads) {
  CHECK_EQ(plan->roles_size(), 1);
  absl::optional<SampleReader> data;
  if (LoadsData(plan->roles(0))) {
    ASSIGN_OR_RETURN(data, OpenData(plan->job()));
  }
  ASSIGN_OR_RETURN(auto units, build_units != nullptr
                                   ? build_units(*plan, plan->rank())
                                   : BuildUnits(*plan, plan->rank()));
  if (!kept.IsOf(plan->fingerprint(), plan->rank())) kept = KeptMemory();
  ASSIGN_OR_RETURN(RankMemory memory,
                   RankMemory::Create(plan->roles(0), arenas,
                                      {.job = plan->job().name(),
                                       .rank = plan->rank(),
                                       .copies = std::move(kept.block)}));
  std::unique_ptr<RankState> state(
      new RankState(std::move(plan), device, std::move(memory), disk,
                    std::move(units), std::move(data), host_threads));
  state->copies = kept.copies;
  RankState& made = *state;
  // Synthetic models have no batch, and blocks of memory have some bytes.
  ASSIGN_OR_RETURN(
      made.batches,
      Uploads::Create(device, std::max<int64_t>(1, BatchBytes(*made.plan))));
  ASSIGN_OR_RETURN(made.flags, Uploads::Create(device, 2 * sizeof(double)));
  return state;
}

KeptMemory RankState::TakeKept() {
  if (copies.Whole().empty()) return {};
  KeptMemory kept = {
      .fingerprint = plan->fingerprint(), .rank = rank(), .copies = copies};
  for (const auto& [kind, places] :
       {std::make_pair(Buffer::STATE_COPY, &kept.own),
        std::make_pair(Buffer::PEER_COPY, &kept.of_peer)}) {
    const Buffer* const buffer = FindResident(role(), kind, absl::nullopt);
    if (buffer == nullptr) continue;
    for (size_t i = 0; i < places->size(); ++i) {
      (*places)[i] = memory.Copies(*buffer).at(i).memory();
    }
  }
  kept.block = memory.TakeCopies();
  return kept;
}

int RankState::data_index() const { return ReplicaOf(plan->mesh(), rank()); }

DType RankState::TypeOfParameters(int unit) const {
  return DTypeOfElement(ParametersType(plan->units(unit)));
}

DType RankState::TypeOfGradients(int unit) const {
  return DTypeOfElement(GradientsType(plan->units(unit)));
}

std::string RankState::tokenizer() const {
  return data.has_value() ? data->tokenizer() : "";
}

std::string RankState::DataIdentity() const {
  return data.has_value() ? data->identity() : "";
}

const Placement& RankState::PlacementOf(int unit) const {
  const Placement* const placement = FindPlacement(role(), unit);
  CHECK(placement != nullptr)
      << "rank " << rank() << " does not hold unit " << unit;
  return *placement;
}

std::vector<StretchAtRest> RankState::AtRest(int unit) const {
  return troupe::AtRest(*plan, PlacementOf(unit), rank());
}

Device& RankState::DeviceOf(int lane) {
  return KindOfLane(plan->lanes(), lane) == Lane::HOST ? host : device;
}

TierAddress RankState::RestIn(const Buffer& buffer, const TierAddress& begin,
                              const StretchAtRest& at) const {
  if (!begin) return begin;
  const int64_t first = buffer.kind() == Buffer::OPTIMIZER_STATE
                            ? at.first_state
                        : buffer.slice() ? at.first
                                         : at.rests.begin;
  return begin + first * BytesOfFlat(plan->units(buffer.unit()), buffer.kind());
}

UnitFlatBuffers RankState::MemoryOf(int unit, const StretchAtRest& at) const {
  const auto rest_in = [&](Buffer::Kind kind) {
    const Buffer* const buffer = FindResident(role(), kind, unit);
    if (buffer == nullptr) return TierAddress();
    return RestIn(*buffer, memory.Copies(*buffer).front(), at);
  };
  UnitFlatBuffers flat = {.parameters = rest_in(Buffer::PARAMETERS),
                          .holds = at.rests};
  CHECK(flat.parameters) << "rank " << rank() << " does not hold unit " << unit;
  if (at.stretch.frozen) {
    flat.parameters_type = TypeOfParameters(unit);
    return flat;
  }
  if (const TierAddress master = rest_in(Buffer::MASTER_WEIGHTS)) {
    flat.rounded_parameters = flat.parameters;
    flat.parameters = master;
  }
  flat.optimizer_state = rest_in(Buffer::OPTIMIZER_STATE);
  return flat;
}

std::vector<UnitFlatBuffers> RankState::StateOfUnit(int unit) const {
  std::vector<UnitFlatBuffers> state;
  for (const StretchAtRest& at : AtRest(unit)) {
    if (at.stretch.all.size() > 0) state.push_back(MemoryOf(unit, at));
  }
  return state;
}

std::vector<int> RankState::HeldUnits() const {
  std::vector<int> held;
  for (int unit = 0; unit < plan->units_size(); ++unit) {
    if (FindResident(role(), Buffer::PARAMETERS, unit) != nullptr &&
        !KeepsNoState(PlacementOf(unit))) {
      held.push_back(unit);
    }
  }
  return held;
}

}  // namespace troupe
