#include "worker/engine/text_ranks.h"

#include <numeric>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/groups.h"
#include "proto/plan/mesh.h"
#include "worker/collective/join_groups.h"
#include "worker/engine/peer_values.h"

namespace troupe {

TextRanks::TextRanks(const TextRanksOptions& options) : options_(options) {
  const Mesh& mesh = options_.plan.mesh();
  std::vector<int> coordinates(mesh.axes_size(), 0);
  for (int i = 0; i < mesh.axes_size(); ++i) {
    const Axis& axis = mesh.axes(i);
    if (axis.name() == "pipeline") coordinates[i] = axis.size() - 1;
  }
  first_with_logits_ = RankAt(mesh, coordinates);
}

TextRanks::~TextRanks() {
  if (token_ != nullptr) options_.device.Free(token_);
}

absl::StatusOr<std::unique_ptr<TextRanks>> TextRanks::Join(
    const TextRanksOptions& options) {
  auto ranks = absl::WrapUnique(new TextRanks(options));
  ASSIGN_OR_RETURN(ranks->token_, options.device.Allocate(sizeof(int32_t)));
  RETURN_IF_ERROR(ranks->Connect());
  return ranks;
}

absl::Status TextRanks::Connect() {
  const auto& groups = options_.plan.groups();
  std::vector<int> all(groups.size());
  std::iota(all.begin(), all.end(), 0);
  ASSIGN_OR_RETURN(auto communicators,
                   JoinGroups(groups, all,
                              {.mesh = options_.plan.mesh(),
                               .rank = options_.rank,
                               .store = options_.store,
                               .host = options_.host,
                               .timeout = options_.join_timeout,
                               .abort = &options_.abort,
                               .device = options_.device}));
  for (int g = 0; g < groups.size(); ++g) {
    (g == 0 ? all_ : along_[groups[g].spans(0).axis()]) =
        std::move(communicators[g]);
  }
  if (all_ != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the text's plan has no group of all ranks; scheduler and worker must be "
      "of one build");
}

absl::Status TextRanks::Meet() {
  return all_->Barrier(
      {.name = "weights of all ranks", .timeout = options_.meet_timeout});
}

absl::Status TextRanks::Exchange(const Op::Exchange& exchange, const Tensor& x,
                                 const Tensor& y) {
  CHECK_EQ(exchange.axes_size(), 1) << "a text's ranks share units otherwise";
  const std::string& axis = exchange.axes(0);
  const auto found = along_.find(axis);
  CHECK(found != along_.end()) << "no group along " << axis;
  return ExchangeValues(exchange, x, y,
                        {.name = absl::StrCat("values along ", axis),
                         .timeout = options_.timeout},
                        *found->second);
}

int TextRanks::Neighbour(int places) const {
  const Mesh& mesh = options_.plan.mesh();
  const int place = CoordinateOn(mesh, "pipeline", options_.rank);
  return PeerRank(mesh, options_.rank, place + places);
}

absl::Status TextRanks::Receive(int unit, const Tensor& input) {
  return all_->Recv(BufferOf(input), Neighbour(-1),
                    {.name = "activations", .timeout = options_.timeout});
}

absl::Status TextRanks::HandOn(int unit, const Tensor& output) {
  return all_->Send(BufferOf(output), Neighbour(1),
                    {.name = "activations", .timeout = options_.timeout});
}

absl::StatusOr<int32_t> TextRanks::Share(int32_t token) {
  RETURN_IF_ERROR(BroadcastNumbers(
      absl::MakeSpan(&token, 1), first_with_logits_,
      {.name = "the next token", .timeout = options_.timeout}, token_,
      options_.device, *all_,
      [this](const absl::Status& queue) { return Outcome(queue); }));
  return token;
}

absl::Status TextRanks::Outcome(const absl::Status& queue) {
  for (const auto& [axis, communicator] : along_) {
    RETURN_IF_ERROR(communicator->Outcome(queue));
  }
  return all_->Outcome(queue);
}

void TextRanks::Abort(const absl::Status& why) {
  if (all_ != nullptr) all_->Abort(why);
  for (const auto& [axis, communicator] : along_) communicator->Abort(why);
}

}  // namespace troupe
