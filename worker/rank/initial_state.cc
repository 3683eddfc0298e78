#include "worker/rank/initial_state.h"

#include <algorithm>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/base/crc32c.h"
#include "proto/base/resume_words.h"
#include "proto/base/status.h"
#include "proto/plan/copies.h"
#include "proto/plan/islands.h"
#include "proto/plan/job_differences.h"
#include "proto/plan/lora.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/slices.h"
#include "storage/checkpoint/check_hugging_face.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/load_tensors.h"
#include "storage/checkpoint/manifest.h"
#include "worker/model/initialize.h"
#include "worker/rank/first_adapters.h"
#include "worker/rank/first_averages.h"
#include "worker/rank/into_tier.h"
#include "worker/rank/model_files.h"
#include "worker/rank/stored_f32.h"
#include "worker/rank/thawed.h"
#include "worker/rank/windows.h"

namespace troupe {
namespace {

constexpr int64_t kBytes = sizeof(float);

// What sets a rank's state.
TierPort NewPort(RankState& state) {
  return TierPort(state.device, &state.memory, &state.disk);
}

// Zeroes a resident buffer of a unit where this rank has it.
absl::Status ZeroResident(RankState& state, TierPort& port, Buffer::Kind kind,
                          int unit) {
  const Buffer* buffer = FindResident(state.role(), kind, unit);
  if (buffer == nullptr || buffer->bytes() == 0) return absl::OkStatus();
  for (const TierAddress& copy : state.memory.Copies(*buffer)) {
    RETURN_IF_ERROR(port.Zero(copy, buffer->bytes()));
  }
  return absl::OkStatus();
}

absl::Status ZeroBeside(RankState& state, TierPort& port, int unit) {
  RETURN_IF_ERROR(ZeroResident(state, port, Buffer::OPTIMIZER_STATE, unit));
  return ZeroResident(state, port, Buffer::PARAMETER_GRADIENTS, unit);
}

// Zeroes all that this rank holds of the model's state: where it is read, only
// alignment gaps and what is not there stay so. To draw it from the seed would
// take longer than to read it.
absl::Status ZeroState(RankState& state, TierPort& port) {
  for (const int unit : state.HeldUnits()) {
    for (const UnitFlatBuffers& memory : state.StateOfUnit(unit)) {
      RETURN_IF_ERROR(port.Zero(
          memory.parameters,
          memory.holds->size() *
              static_cast<int64_t>(DTypeBytes(memory.parameters_type))));
    }
    RETURN_IF_ERROR(ZeroBeside(state, port, unit));
  }
  return absl::OkStatus();
}

// Puts what this rank has of a tensor where it rests: `read` gives elements
// [begin, begin + count) of the whole.
absl::Status FillInPieces(
    TierPort& port, const StateTensor& tensor,
    absl::FunctionRef<absl::Status(int64_t begin, int64_t count, float* host)>
        read) {
  std::vector<char> host = WindowOf(tensor.elements);
  const int64_t whole = ElementCount(tensor.shape);
  for (const SliceRun& run : RunsWithin(tensor, 0, whole)) {
    RETURN_IF_ERROR(
        InWindows(run.count, [&](int64_t done, int64_t count) -> absl::Status {
          RETURN_IF_ERROR(read(run.whole + done, count,
                               reinterpret_cast<float*>(host.data())));
          RETURN_IF_ERROR(WriteF32(
              port, tensor.At({.local = run.local + done, .count = count}),
              reinterpret_cast<const float*>(host.data())));
          return port.Settle();
        }));
  }
  return absl::OkStatus();
}

bool Has(const Manifest& manifest, absl::string_view name) {
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (tensor.name == name) return true;
  }
  return false;
}

std::vector<StateTensor> AllStateTensors(const RankState& state) {
  std::vector<StateTensor> tensors;
  for (const int unit : state.HeldUnits()) {
    for (const UnitFlatBuffers& memory : state.StateOfUnit(unit)) {
      for (StateTensor& tensor :
           UnitStateTensors(state.plan->job().optimizer(),
                            state.plan->units(unit), memory, state.place())) {
        tensors.push_back(std::move(tensor));
      }
    }
  }
  return tensors;
}

absl::Status BeginAllAverages(const RankState& state, TierPort& port) {
  return BeginAverages(AllStateTensors(state), port,
                       [](absl::string_view) { return true; });
}

// What this rank has of an adapter's weight, as training begins.
absl::Status BeginAdapter(const FirstAdapters& adapters,
                          const Parameter& adapter, const StateTensor& tensor,
                          TierPort& port) {
  return FillInPieces(
      port, tensor, [&](int64_t begin, int64_t count, float* host) {
        return adapters.Read(adapter, {.begin = begin, .count = count}, host);
      });
}

// Whether a checkpoint of a job without adapters lacks a tensor for that
// reason: a weight of one, or a state of its optimizer.
bool LacksAdapters(const JobSpec& saved, absl::string_view name) {
  return !saved.training().has_lora() &&
         (absl::EndsWith(name, kLoraDown) || absl::EndsWith(name, kLoraUp));
}

// An island goes on from its own tensors where the checkpoint has some, else
// from those that any plan does.
void NameAsStored(const Manifest& manifest, const RankState& state,
                  std::string& name) {
  std::string own =
      TensorOfIsland(IslandOf(state.plan->mesh(), state.rank()), name);
  if (Has(manifest, own)) name = std::move(own);
}

// What this rank holds and the checkpoint has. Adapters that it does not have
// begin.
absl::StatusOr<std::vector<TensorToLoad>> TensorsToLoad(
    const Manifest& manifest, const JobSpec& saved, RankState& state,
    TierPort& port) {
  absl::optional<FirstAdapters> adapters;
  if (!saved.training().has_lora()) {
    ASSIGN_OR_RETURN(adapters, FirstAdapters::Open(*state.plan, state.host));
  }
  std::vector<TensorToLoad> tensors;
  for (StateTensor& tensor : AllStateTensors(state)) {
    NameAsStored(manifest, state, tensor.name);
    const bool stored = Has(manifest, tensor.name);
    // What was not trained yet has no moments: they are zero, as before
    // step 1. What was not averaged, or exchanged, begins as the weights.
    if (!stored && IsStateTensor(tensor.name) &&
        (manifest.step == 0 || !BeginsAsParameter(tensor.name).empty() ||
         IsOuterStateTensor(tensor.name) ||
         StateWasFrozen(saved, tensor.name) ||
         LacksAdapters(saved, tensor.name))) {
      continue;
    }
    const Parameter* const adapter =
        adapters.has_value() ? adapters->Find(tensor.name) : nullptr;
    if (!stored && adapter != nullptr) {
      RETURN_IF_ERROR(BeginAdapter(*adapters, *adapter, tensor, port));
      continue;
    }
    if (!stored) {
      return absl::InvalidArgumentError(
          absl::StrCat("it has no tensor ", tensor.name,
                       "; was it written with another optimizer or model?"));
    }
    tensors.push_back(IntoTier(tensor, port));
  }
  return tensors;
}

absl::Status Load(const CheckpointToLoad& checkpoint, const JobSpec& saved,
                  const RankDisk& disk, RankState& state, TierPort& port) {
  ASSIGN_OR_RETURN(const std::vector<TensorToLoad> tensors,
                   TensorsToLoad(checkpoint.manifest, saved, state, port));
  ASSIGN_OR_RETURN(CheckpointLoad load,
                   CheckpointLoad::Of(checkpoint, tensors));
  const DiskLog::Entry entry(disk.log,
                             {.step = checkpoint.manifest.step,
                              .bytes = static_cast<int64_t>(load.bytes())});
  RETURN_IF_ERROR(load.Run(disk.io, entry.moved()));
  RETURN_IF_ERROR(port.Flush());
  return BeginAverages(AllStateTensors(state), port,
                       [&checkpoint](absl::string_view name) {
                         return !Has(checkpoint.manifest, name);
                       });
}

// That the samples to come are of the data that the checkpoint was trained on.
// Gives back in what they differ, where that is meant; empty: in nothing.
absl::StatusOr<std::string> CheckSameData(const Manifest& manifest,
                                          const RankState& state) {
  const std::string here = state.DataIdentity();
  // Neither an imported model nor a rank without data has any.
  if (manifest.data.empty() || here.empty() || manifest.data == here) return "";
  const JobSpec& job = state.plan->job();
  if (job.data().changed()) {
    return absl::StrCat("data.tokens: ", manifest.data, " there, ", here,
                        " in this job");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "it was trained on other tokens, or on the same in another order: ",
      manifest.data, "; data.tokens: ", TokensOf(job, state.data), " has ",
      here,
      "; put that back, or, if other data is meant from here on, set "
      "data.changed: true"));
}

// Draws weights of a unit where they rest, or through a window.
absl::Status DrawWeights(RankState& state, TierPort& port, int unit,
                         const UnitFlatBuffers& memory) {
  const TierAddress weights = memory.parameters;
  const Range rests = *memory.holds;
  const int64_t width =
      static_cast<int64_t>(DTypeBytes(memory.parameters_type));
  InitialWeights initial = {.seed = state.plan->job().training().seed(),
                            .place = state.place(),
                            .holds = rests};
  if (weights.tier() == DEVICE && memory.parameters_type == DType::kF32) {
    InitializeParameters(state.device, state.plan->units(unit), initial,
                         weights.memory());
    return absl::OkStatus();
  }
  std::vector<char> host = WindowOf(rests.size());
  return InWindows(
      rests.size(), [&](int64_t begin, int64_t count) -> absl::Status {
        initial.holds = {rests.begin + begin, rests.begin + begin + count};
        InitializeParameters(state.host, state.plan->units(unit), initial,
                             host.data());
        return WriteF32(port,
                        {.first = weights + begin * width,
                         .type = memory.parameters_type,
                         .count = count},
                        reinterpret_cast<const float*>(host.data()));
      });
}

// What the model computes with, of the weights that were set, rounded.
absl::Status RoundWeights(RankState& state, TierPort& port, int unit,
                          const UnitFlatBuffers& memory) {
  const TierAddress& from = memory.parameters;
  const TierAddress& to = memory.rounded_parameters;
  const int64_t elements = memory.holds->size();
  if (from.tier() == DEVICE && to.tier() == DEVICE) {
    RoundParameters(state.device, elements,
                    {.weights = from.memory(),
                     .parameters = to.memory(),
                     .type = state.TypeOfParameters(unit)});
    return absl::OkStatus();
  }
  std::vector<char> weights = WindowOf(elements);
  std::vector<char> rounded(weights.size() / 2);
  return InWindows(elements, [&](int64_t begin, int64_t count) -> absl::Status {
    RETURN_IF_ERROR(
        port.Read(from + begin * kBytes, count * kBytes, weights.data()));
    RETURN_IF_ERROR(port.Settle());
    RoundParameters(state.host, count,
                    {.weights = weights.data(),
                     .parameters = rounded.data(),
                     .type = state.TypeOfParameters(unit)});
    RETURN_IF_ERROR(port.Write(to + begin * kBytes / 2, rounded.data(),
                               count * kBytes / 2));
    return port.Settle();
  });
}

// Lets the model compute with the weights that were set: rounds them where it
// does not compute with themselves, and makes every version of them the same.
absl::Status SpreadWeights(RankState& state, TierPort& port, int unit) {
  for (const UnitFlatBuffers& memory : state.StateOfUnit(unit)) {
    if (memory.holds->size() == 0 || !memory.rounded_parameters) continue;
    RETURN_IF_ERROR(RoundWeights(state, port, unit, memory));
  }
  const Buffer& parameters =
      *FindResident(state.role(), Buffer::PARAMETERS, unit);
  const std::vector<TierAddress> copies = state.memory.Copies(parameters);
  for (size_t i = 1; i < copies.size(); ++i) {
    RETURN_IF_ERROR(port.Move(copies[0], copies[i], parameters.bytes()));
  }
  return absl::OkStatus();
}

absl::Status SpreadAllWeights(RankState& state, TierPort& port) {
  for (const int unit : state.HeldUnits()) {
    RETURN_IF_ERROR(SpreadWeights(state, port, unit));
  }
  return port.Flush();
}

// Whether a difference between two jobs (proto/plan/job_differences.h) changes
// the loss that the same weights have.
bool ChangesLoss(absl::string_view difference) {
  // Modules, which an evaluation leaves out.
  if (absl::StartsWith(difference, "model.num_nextn_predict_layers ") ||
      absl::StartsWith(difference, "model.mtp_coefficient ")) {
    return false;
  }
  for (const absl::string_view field :
       {"model.", "training.precision ", "training.lora.",
        "data.isolate_documents "}) {
    if (absl::StartsWith(difference, field)) {
      return !absl::StartsWith(difference, "training.lora.dropout ");
    }
  }
  return false;
}

// Of a job that evaluates: it begins at its own first step, on its own data,
// whatever the checkpoint's job was trained on.
absl::StatusOr<TrainingPosition> BeginsWith(const std::string& context,
                                            const JobSpec& saved,
                                            const RankState& state) {
  const JobSpec& job = state.plan->job();
  if (saved.training().has_lora() && job.training().has_lora()) {
    const double there = LoraScale(saved.training().lora());
    const double here = LoraScale(job.training().lora());
    if (there != here) {
      return absl::InvalidArgumentError(absl::StrCat(
          "training.lora.alpha: adapters count ", here, " times, and in ",
          context, " ", there,
          " times; use alpha, rank and rank_stabilized of its job"));
    }
  }
  TrainingPosition position;
  for (std::string& difference : JobDifferences(saved, job)) {
    if (ChangesLoss(difference)) {
      position.differences.push_back(std::move(difference));
    }
  }
  return position;
}

// How far the training had come that the job goes on with, and in what it
// differs.
absl::StatusOr<TrainingPosition> GoesOnFrom(const Manifest& manifest,
                                            const std::string& context,
                                            const JobSpec& saved,
                                            const RankState& state) {
  const int64_t steps = state.plan->job().training().steps();
  // With `auto` a job that has done all its steps, or more, is done.
  if (manifest.step > steps &&
      state.plan->job().checkpoint().resume() != kResumeAuto) {
    return absl::InvalidArgumentError(
        absl::StrCat("training.steps: ", steps, ", but ", context,
                     " is of step ", manifest.step));
  }
  const absl::StatusOr<std::string> other_data = CheckSameData(manifest, state);
  if (!other_data.ok()) return Annotate(other_data.status(), context);
  TrainingPosition position = {
      .step = manifest.step,
      .samples_consumed = static_cast<int64_t>(manifest.samples_consumed),
      .differences = JobDifferences(saved, state.plan->job())};
  for (const std::string& more :
       {StatesThatBegin(saved, *state.plan), *other_data}) {
    if (!more.empty()) position.differences.push_back(more);
  }
  return position;
}

}  // namespace

absl::Status InitializeFromSeed(RankState& state) {
  TierPort port = NewPort(state);
  ASSIGN_OR_RETURN(const FirstAdapters adapters,
                   FirstAdapters::Open(*state.plan, state.host));
  for (const int unit : state.HeldUnits()) {
    for (const UnitFlatBuffers& memory : state.StateOfUnit(unit)) {
      RETURN_IF_ERROR(DrawWeights(state, port, unit, memory));
    }
    RETURN_IF_ERROR(ZeroBeside(state, port, unit));
  }
  for (const StateTensor& tensor : AllStateTensors(state)) {
    const Parameter* const adapter = adapters.Find(tensor.name);
    if (adapter == nullptr) continue;
    RETURN_IF_ERROR(BeginAdapter(adapters, *adapter, tensor, port));
  }
  RETURN_IF_ERROR(BeginAllAverages(state, port));
  return SpreadAllWeights(state, port);
}

absl::Status InitializeFromHuggingFace(const std::string& directory,
                                       const RankDisk& disk, RankState& state) {
  TierPort port = NewPort(state);
  RETURN_IF_ERROR(ZeroState(state, port));
  // Every rank reads the headers anyway; one comparison of tables will do.
  const HuggingFaceCheck check = state.rank() == 0 ? HuggingFaceCheck::kTables
                                                   : HuggingFaceCheck::kHeaders;
  absl::StatusOr<HuggingFaceWeights> weights =
      OpenHuggingFaceWeights(directory, ContentsOf(*state.plan), check);
  if (!weights.ok()) return Annotate(weights.status(), "model.hf");
  ASSIGN_OR_RETURN(const FirstAdapters adapters,
                   FirstAdapters::Open(*state.plan, state.host));
  DiskLog::Work work;
  for (const int unit : state.HeldUnits()) {
    for (const UnitFlatBuffers& memory : state.StateOfUnit(unit)) {
      work.bytes += memory.holds->size() * kBytes;
    }
  }
  const DiskLog::Entry entry(disk.log, work);
  const OnBytesMoved moved = entry.moved();
  for (const StateTensor& tensor : AllStateTensors(state)) {
    if (IsStateTensor(tensor.name)) continue;  // the directory has none
    const Parameter* const adapter = adapters.Find(tensor.name);
    if (adapter != nullptr) {
      RETURN_IF_ERROR(BeginAdapter(adapters, *adapter, tensor, port));
      continue;
    }
    const absl::Status read = FillInPieces(
        port, tensor, [&](int64_t begin, int64_t count, float* host) {
          RETURN_IF_ERROR(moved(count * sizeof(float)));
          return weights->ReadF32(tensor.name, {.begin = begin, .count = count},
                                  host);
        });
    RETURN_IF_ERROR(Annotate(read, "model.hf"));
  }
  RETURN_IF_ERROR(BeginAllAverages(state, port));
  return SpreadAllWeights(state, port);
}

absl::StatusOr<TrainingPosition> RestoreFromCheckpoint(const std::string& path,
                                                       const RankDisk& disk,
                                                       RankState& state) {
  TierPort port = NewPort(state);
  RETURN_IF_ERROR(ZeroState(state, port));
  const std::string context = absl::StrCat("checkpoint ", path);
  const absl::StatusOr<Manifest> read = ReadCheckpoint(path);
  if (!read.ok()) return Annotate(read.status(), context);
  const Manifest& manifest = *read;
  const JobSpec saved = JobOf(manifest);
  RETURN_IF_ERROR(
      Annotate(CheckSameModel(manifest, saved, *state.plan), context));
  ASSIGN_OR_RETURN(TrainingPosition position,
                   state.plan->job().evaluate()
                       ? BeginsWith(context, saved, state)
                       : GoesOnFrom(manifest, context, saved, state));
  position.data_unchecked = manifest.data_unchecked;
  position.content = absl::StrCat(
      "manifest ",
      absl::Hex(Crc32c(FormatManifest(manifest)), absl::kZeroPad8));
  RETURN_IF_ERROR(
      Annotate(Load({path, manifest}, saved, disk, state, port), context));
  RETURN_IF_ERROR(SpreadAllWeights(state, port));
  state.loss_scale =
      LossScale(state.plan->job().training(), manifest.loss_scale);
  return position;
}

absl::Status RestoreFromCopy(const char* copy, RankState& state) {
  TierPort port = NewPort(state);
  RETURN_IF_ERROR(ZeroState(state, port));
  const Plan& plan = *state.plan;
  for (const int unit : state.HeldUnits()) {
    const char* from = copy + CopyOffsetOfUnit(plan, state.role(), unit);
    for (const UnitFlatBuffers& memory : state.StateOfUnit(unit)) {
      const int64_t bytes =
          memory.holds->size() *
          static_cast<int64_t>(DTypeBytes(memory.parameters_type));
      RETURN_IF_ERROR(port.Write(memory.parameters, from, bytes));
      from += bytes;
      if (!memory.optimizer_state) continue;
      const int64_t state_bytes =
          kBytes * StateElements(plan.job().optimizer(), plan.units(unit),
                                 *memory.holds);
      RETURN_IF_ERROR(port.Write(memory.optimizer_state, from, state_bytes));
      from += state_bytes;
    }
  }
  RETURN_IF_ERROR(port.Settle());
  return SpreadAllWeights(state, port);
}

}  // namespace troupe
