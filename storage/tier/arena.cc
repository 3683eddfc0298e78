#include "storage/tier/arena.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// 1536 -> "1.5 KiB".
std::string FormatBytes(size_t bytes) {
  constexpr absl::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  while (value >= 1024 && unit < 3) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

}  // namespace

ArenaBlock& ArenaBlock::operator=(ArenaBlock&& other) noexcept {
  if (this == &other) return *this;
  Release();
  arena_ = std::exchange(other.arena_, nullptr);
  line_item_ = std::move(other.line_item_);
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void ArenaBlock::Release() {
  if (arena_ == nullptr) return;
  std::exchange(arena_, nullptr)
      ->Return(line_item_, std::exchange(data_, nullptr),
               std::exchange(bytes_, 0));
}

Arena::Arena(std::string tier, size_t budget_bytes, TierAllocator& allocator)
    : tier_(std::move(tier)), budget_(budget_bytes), allocator_(&allocator) {}

Arena::Arena(std::string tier, size_t budget_bytes)
    : tier_(std::move(tier)), budget_(budget_bytes), allocator_(nullptr) {}

Arena::~Arena() {
  CHECK_EQ(used(), 0u) << "a block outlives the arena of tier " << tier_;
}

absl::StatusOr<ArenaBlock> Arena::Allocate(absl::string_view line_item,
                                           size_t bytes) {
  if (bytes == 0) return ArenaBlock();
  {
    // Charged first, so that threads that allocate at once cannot overdraw; the
    // allocator is then called without the lock.
    absl::MutexLock lock(&mutex_);
    if (bytes > budget_ - used_) return PastBudget(line_item, bytes);
    used_ += bytes;
    peak_ = std::max(peak_, used_);
    LineItemUse& use = ledger_[std::string(line_item)];
    use.used += bytes;
    use.peak = std::max(use.peak, use.used);
  }
  absl::StatusOr<void*> data = nullptr;
  if (allocator_ != nullptr) data = allocator_->Allocate(bytes);
  if (!data.ok()) {
    Return(std::string(line_item), nullptr, bytes);
    return Annotate(data.status(),
                    absl::StrCat("tier ", tier_, ": ", line_item));
  }
  return ArenaBlock(this, std::string(line_item), static_cast<char*>(*data),
                    bytes);
}

void Arena::Return(const std::string& line_item, char* data, size_t bytes) {
  if (data != nullptr) allocator_->Free(data, bytes);
  absl::MutexLock lock(&mutex_);
  used_ -= bytes;
  ledger_[line_item].used -= bytes;
}

absl::Status Arena::PastBudget(absl::string_view line_item,
                               size_t bytes) const {
  std::vector<std::pair<size_t, std::string>> items;
  for (const auto& [name, use] : ledger_) {
    if (use.used > 0) items.push_back({use.used, name});
  }
  std::sort(items.rbegin(), items.rend());
  const std::string by_item = absl::StrJoin(
      items, ", ",
      [](std::string* out, const std::pair<size_t, std::string>& i) {
        absl::StrAppend(out, i.second, " ", FormatBytes(i.first));
      });
  return absl::ResourceExhaustedError(absl::StrCat(
      "tier ", tier_, ": ", line_item, " needs ", FormatBytes(bytes), ", but ",
      FormatBytes(used_), " of the ", FormatBytes(budget_), " budget are used",
      items.empty() ? "" : absl::StrCat(" (", by_item, ")"), "; ",
      FormatBytes(bytes - (budget_ - used_)), " short"));
}

size_t Arena::used() const {
  absl::MutexLock lock(&mutex_);
  return used_;
}

size_t Arena::peak() const {
  absl::MutexLock lock(&mutex_);
  return peak_;
}

std::map<std::string, LineItemUse> Arena::ledger() const {
  absl::MutexLock lock(&mutex_);
  return ledger_;
}

}  // namespace troupe
