#include "scheduler/passes/place_gathers.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "proto/plan/buffer_kind.h"

namespace troupe {
namespace {

constexpr int kNoUnit = -1;

// The buffer of the whole unit that a gather makes; kNoUnit: it fills what is
// there anyway.
int WholeUnit(const Program& program, const Instruction& instruction) {
  if (instruction.kind() != Instruction::GATHER_PARAMETERS) return kNoUnit;
  for (const Instruction::Operand& operand : instruction.operands()) {
    const Buffer& buffer = program.buffers(operand.buffer());
    if (buffer.kind() == Buffer::UNSHARDED_PARAMETERS) return operand.buffer();
  }
  return kNoUnit;
}

std::vector<int> LastUses(const Program& program) {
  std::vector<int> last_use(program.buffers_size(), kNoUnit);
  for (int i = 0; i < program.instructions_size(); ++i) {
    for (const Instruction::Operand& operand :
         program.instructions(i).operands()) {
      last_use[operand.buffer()] = i;
    }
  }
  return last_use;
}

// Bytes for a time.
struct Block {
  int64_t offset = 0;
  int64_t bytes = 0;
  Life life;

  bool operator<(const Block& other) const { return offset < other.offset; }
};

class Ground {
 public:
  Ground(int64_t bytes, int64_t large) : bytes_(bytes), large_(large) {}

  void AddBeside(const Block& block) { beside_.push_back(block); }
  // REQUIRES all of them.
  void SortBeside() {
    std::sort(beside_.begin(), beside_.end(),
              [](const Block& a, const Block& b) {
                return a.life.begin < b.life.begin;
              });
  }

  // A place for a unit that is used from `life.begin` on: its own, from when on
  // it has that. Never before that of the unit placed last.
  absl::optional<Block> Place(int64_t bytes, const Life& life) {
    Forget();
    for (const int since : Times(life)) {
      const int64_t offset = FindRoom(bytes, {since, life.end});
      if (offset == kNowhere) continue;
      begin_ = since;
      const Block block = {offset, bytes, {since, life.end}};
      whole_.push_back(block);
      return block;
    }
    return absl::nullopt;
  }

 private:
  static constexpr int64_t kNowhere = -1;

  // What is over before the next unit may begin.
  void Forget() {
    const auto over = [this](const Block& block) {
      return block.life.end < begin_;
    };
    whole_.erase(std::remove_if(whole_.begin(), whole_.end(), over),
                 whole_.end());
    while (!beside_.empty() && over(beside_.front())) beside_.pop_front();
  }

  // At which there is more room than before, up to when it has to be there.
  std::set<int> Times(const Life& life) const {
    std::set<int> times = {begin_, life.begin};
    const auto add = [&](const Block& block) {
      const int free = block.life.end + 1;
      if (free > begin_ && free < life.begin) times.insert(free);
    };
    for (const Block& block : whole_) add(block);
    for (const Block& block : beside_) {
      if (block.life.begin > life.begin) break;
      add(block);
    }
    return times;
  }

  // Small ones from below, large ones from above, so that they do not cut up
  // each other's room.
  int64_t FindRoom(int64_t bytes, const Life& life) const {
    std::vector<Block> there;
    for (const Block& block : whole_) {
      if (block.life.end >= life.begin) there.push_back(block);
    }
    for (const Block& block : beside_) {
      if (block.life.begin > life.end) break;
      if (block.life.end >= life.begin) there.push_back(block);
    }
    std::sort(there.begin(), there.end());
    int64_t found = kNowhere;
    int64_t free = 0;
    const auto consider = [&](int64_t end) {
      if (end - free < bytes) return;
      if (bytes >= large_) {
        found = end - bytes;
      } else if (found == kNowhere) {
        found = free;
      }
    };
    for (const Block& block : there) {
      consider(block.offset);
      free = std::max(free, block.offset + block.bytes);
    }
    consider(bytes_);
    return found;
  }

  const int64_t bytes_;
  const int64_t large_;
  int begin_ = 0;  // of the unit placed last
  std::vector<Block> whole_;
  std::deque<Block> beside_;  // by when they begin
};

}  // namespace

absl::optional<GatherPlaces> PlaceGathers(const Program& program,
                                          const BesideGathers& beside,
                                          int64_t bytes) {
  GatherPlaces places;
  const auto put = [&places](int buffer, const Block& block) {
    places.offsets[buffer] = block.offset;
    places.bytes = std::max(places.bytes, block.offset + block.bytes);
  };
  int64_t largest = 0;
  for (const Buffer& buffer : program.buffers()) {
    if (buffer.kind() != Buffer::UNSHARDED_PARAMETERS) continue;
    largest = std::max(largest, TierAligned(buffer.bytes(), DEVICE));
  }
  bytes -= bytes % AlignmentOf(DEVICE);
  Ground ground(bytes, largest / 2);
  std::vector<Tenant> tenants;
  for (const auto& [buffer, tenant] : beside) tenants.push_back(tenant);
  std::vector<int64_t> ends = PackBuffers(tenants);
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  size_t t = 0;
  for (const auto& [buffer, tenant] : beside) {
    const auto [slot, offset] = tenants[t++].place;
    const Block block = {(slot > 0 ? ends[slot - 1] : 0) + offset, tenant.bytes,
                         tenant.life};
    put(buffer, block);
    ground.AddBeside(block);
  }
  ground.SortBeside();
  if (places.bytes > bytes) return absl::nullopt;
  const std::vector<int> last_uses = LastUses(program);
  std::map<int, int> since;  // by buffer
  places.since.resize(program.instructions_size());
  std::iota(places.since.begin(), places.since.end(), 0);
  for (int i = 0; i < program.instructions_size(); ++i) {
    const int unit = WholeUnit(program, program.instructions(i));
    if (unit == kNoUnit) continue;
    // It goes on with what another gather began.
    const auto begun = since.find(unit);
    if (begun != since.end()) {
      places.since[i] = begun->second;
      continue;
    }
    const absl::optional<Block> block =
        ground.Place(TierAligned(program.buffers(unit).bytes(), DEVICE),
                     {i, last_uses[unit]});
    if (!block.has_value()) return absl::nullopt;
    places.since[i] = since[unit] = block->life.begin;
    put(unit, *block);
  }
  return places;
}

}  // namespace troupe
