#include "worker/engine/sample_peers.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "proto/plan/groups.h"
#include "proto/plan/mesh.h"
#include "proto/plan/served.h"
#include "worker/engine/peer_values.h"

namespace troupe {
namespace {

constexpr int32_t kTimeIsUp = -1;  // in place of a token

absl::Status TimeIsUp() {
  return absl::DeadlineExceededError("the sample takes too long");
}

int MemberOf(const Communicator& communicator, int rank) {
  const std::vector<int>& ranks = communicator.group().ranks;
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  CHECK(found != ranks.end())
      << "rank " << rank << " is not in " << communicator.group().name;
  return static_cast<int>(found - ranks.begin());
}

}  // namespace

SamplePeers::SamplePeers(RankState& state, absl::Time end)
    : state_(state), plan_(*state.plan), end_(end), weights_(state) {
  const Mesh& mesh = plan_.mesh();
  std::vector<int> coordinates(mesh.axes_size(), 0);
  for (int i = 0; i < mesh.axes_size(); ++i) {
    if (mesh.axes(i).name() == kPipelineAxis) {
      coordinates[i] = PlaceOf(plan_.decoding().units_size() - 1);
    }
  }
  draws_first_ = RankAt(mesh, coordinates);
}

SamplePeers::~SamplePeers() {
  if (number_ != nullptr) state_.device.Free(number_);
}

absl::StatusOr<std::unique_ptr<SamplePeers>> SamplePeers::Create(
    RankState& state, absl::Time end) {
  auto peers = absl::WrapUnique(new SamplePeers(state, end));
  RETURN_IF_ERROR(peers->FindCommunicators());
  ASSIGN_OR_RETURN(peers->number_, state.device.Allocate(sizeof(int32_t)));
  return peers;
}

absl::StatusOr<Communicator*> SamplePeers::Find(
    absl::optional<int> group) const {
  if (!group.has_value()) return nullptr;
  Communicator* const found = state_.communicators.at(*group).get();
  if (found != nullptr) return found;
  return absl::InternalError(
      absl::StrCat("data.sample: the rank does not meet others in ",
                   plan_.groups(*group).name(), " to validate"));
}

absl::Status SamplePeers::FindCommunicators() {
  const Decoding& decoding = plan_.decoding();
  const auto index = [](bool has, int group) {
    return has ? absl::make_optional(group) : absl::nullopt;
  };
  ASSIGN_OR_RETURN(world_, Find(index(decoding.has_world(), decoding.world())));
  // One that runs no unit meets nobody else.
  if (IsServer(plan_, state_.rank())) return absl::OkStatus();
  ASSIGN_OR_RETURN(transfers_,
                   Find(index(decoding.has_transfers(), decoding.transfers())));
  ASSIGN_OR_RETURN(exchanges_,
                   Find(index(decoding.has_exchanges(), decoding.exchanges())));
  return absl::OkStatus();
}

ModelPart SamplePeers::Part() {
  const Decoding& decoding = plan_.decoding();
  ModelPart part = {.place = state_.place(), .peers = this};
  part.units.units = {decoding.units().begin(), decoding.units().end()};
  part.units.tables = {decoding.tables().begin(), decoding.tables().end()};
  part.units.batch = decoding.batch();
  part.weights.resize(decoding.units_size());
  if (IsServer(plan_, state_.rank())) return part;
  const int here = CoordinateOn(plan_.mesh(), kPipelineAxis, state_.rank());
  for (const Stage& stage : plan_.stages()) {
    if (stage.pipeline_ranks(0) != here) continue;
    const int end =
        std::min(stage.unit() + stage.unit_count(), decoding.units_size());
    if (end <= stage.unit()) continue;  // of units that write no text
    if (!part.runs.empty() && part.runs.back().end == stage.unit()) {
      part.runs.back().end = end;
    } else {
      part.runs.push_back({stage.unit(), end});
    }
    for (int u = stage.unit(); u < end; ++u) part.weights[u] = weights_.Of(u);
  }
  return part;
}

int SamplePeers::PlaceOf(int unit) const {
  for (const Stage& stage : plan_.stages()) {
    if (unit < stage.unit() + stage.unit_count()) {
      return stage.pipeline_ranks(0);
    }
  }
  CHECK(false) << "no stage has unit " << unit;
  return 0;
}

int SamplePeers::MemberWith(int unit) const {
  return MemberOf(*transfers_,
                  PeerRank(plan_.mesh(), state_.rank(), PlaceOf(unit)));
}

CommOptions SamplePeers::OptionsFor(std::string what) const {
  return {.name = std::move(what), .timeout = state_.collective_timeout};
}

absl::Status SamplePeers::Outcome(const absl::Status& queue) const {
  for (Communicator* const communicator : {exchanges_, transfers_, world_}) {
    if (communicator == nullptr) continue;
    RETURN_IF_ERROR(communicator->Outcome(queue));
  }
  return weights_.Outcome(queue);
}

absl::Status SamplePeers::Broadcast(absl::Span<int32_t> numbers, int rank,
                                    const std::string& what) {
  void* memory = number_;
  const bool many = numbers.size() > 1;
  if (many) {
    ASSIGN_OR_RETURN(memory,
                     state_.device.Allocate(numbers.size() * sizeof(int32_t)));
  }
  const absl::Status status = BroadcastNumbers(
      numbers, MemberOf(*world_, rank), OptionsFor(what), memory, state_.device,
      *world_, [this](const absl::Status& queue) { return Outcome(queue); });
  if (many) state_.device.Free(memory);
  return status;
}

absl::Status SamplePeers::ShareNumbers(std::vector<int32_t>& numbers) {
  if (!together()) return absl::OkStatus();
  int32_t count = static_cast<int32_t>(numbers.size());
  RETURN_IF_ERROR(
      Broadcast(absl::MakeSpan(&count, 1), 0, "the length of a prompt"));
  numbers.resize(count);
  if (count == 0) return absl::OkStatus();
  return Broadcast(absl::MakeSpan(numbers), 0, "a prompt");
}

absl::StatusOr<bool> SamplePeers::AllReady(bool ready) {
  if (!together()) return ready;
  Device& device = state_.device;
  float missing = ready ? 0 : 1;
  device.CopyFromHost(number_, &missing, sizeof(missing));
  RETURN_IF_ERROR(device.Synchronize());
  RETURN_IF_ERROR(world_->AllReduce(
      {.data = number_, .elements = 1, .element = DType::kF32},
      ReduceOp::kSum, OptionsFor("who has memory for a text")));
  device.CopyToHost(&missing, number_, sizeof(missing));
  RETURN_IF_ERROR(Outcome(device.Synchronize()));
  return missing == 0;
}

absl::Status SamplePeers::AloneInTime() {
  if (together()) return absl::OkStatus();
  late_ = late_ || SteadyNow() >= end_;
  return late_ ? TimeIsUp() : absl::OkStatus();
}

absl::Status SamplePeers::Exchange(const Op::Exchange& exchange,
                                   const Tensor& x, const Tensor& y) {
  CHECK(exchanges_ != nullptr) << "nobody has pieces of the same weights";
  return ExchangeValues(exchange, x, y, OptionsFor("values of a text"),
                        *exchanges_);
}

absl::Status SamplePeers::Receive(int unit, const Tensor& input) {
  return transfers_->Recv(BufferOf(input), MemberWith(unit - 1),
                          OptionsFor("activations of a text"));
}

absl::Status SamplePeers::HandOn(int unit, const Tensor& output) {
  return transfers_->Send(BufferOf(output), MemberWith(unit),
                          OptionsFor("activations of a text"));
}

absl::Status SamplePeers::BringWeights(int unit) {
  return weights_.Bring(unit);
}

absl::StatusOr<int32_t> SamplePeers::Share(int32_t token) {
  if (SteadyNow() >= end_) token = kTimeIsUp;
  if (together()) {
    RETURN_IF_ERROR(Broadcast(absl::MakeSpan(&token, 1), draws_first_,
                              "the next token of a text"));
  }
  late_ = token == kTimeIsUp;
  if (late_) return TimeIsUp();
  return token;
}

}  // namespace troupe
