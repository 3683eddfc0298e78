#include "scheduler/passes/pack_buffers.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr int kMoments = 30;

bool LivesAt(const Life& life, int moment) {
  return life.GoesRound() ? moment >= life.begin || moment <= life.end
                          : moment >= life.begin && moment <= life.end;
}

bool LiveTogether(const Tenant& a, const Tenant& b) {
  for (int moment = 0; moment < kMoments; ++moment) {
    if (LivesAt(a.life, moment) && LivesAt(b.life, moment)) return true;
  }
  return false;
}

void ExpectApart(const std::vector<Tenant>& tenants,
                 const std::vector<int64_t>& slots) {
  for (const Tenant& a : tenants) {
    const auto [slot, offset] = a.place;
    EXPECT_GE(offset, 0);
    EXPECT_LE(offset + a.bytes, slots.at(slot));
    for (const Tenant& b : tenants) {
      if (&a == &b || b.place.first != slot || !LiveTogether(a, b)) continue;
      const int64_t other = b.place.second;
      EXPECT_TRUE(offset + a.bytes <= other || other + b.bytes <= offset)
          << a.bytes << " bytes at " << offset << " and " << b.bytes << " at "
          << other << " of slot " << slot;
    }
  }
}

// After ExpectApart.
int64_t PackedBytes(std::vector<Tenant>& tenants) {
  const std::vector<int64_t> slots = PackBuffers(tenants);
  ExpectApart(tenants, slots);
  return std::accumulate(slots.begin(), slots.end(), int64_t{0});
}

TEST(PackBuffers, SmallOnesLieSideBySideWhereALargeOneWas) {
  std::vector<Tenant> tenants = {{.bytes = 1024, .life = {0, 9}},
                                 {.bytes = 512, .life = {10, 15}},
                                 {.bytes = 256, .life = {12, 19}},
                                 {.bytes = 256, .life = {10, 19}},
                                 {.bytes = 512, .life = {16, 19}}};
  EXPECT_EQ(PackedBytes(tenants), 1024);
}

// What a value leaves of a place is free for as long as the place was, not only
// while the value lives.
TEST(PackBuffers, WhatIsLeftBesideOutlivesTheNeighbour) {
  std::vector<Tenant> tenants = {{.bytes = 1024, .life = {0, 0}},
                                 {.bytes = 640, .life = {1, 5}},
                                 {.bytes = 640, .life = {6, 9}},
                                 {.bytes = 384, .life = {4, 7}}};
  EXPECT_EQ(PackedBytes(tenants), 1024);
}

// Whole blocks lie at whole blocks.
TEST(PackBuffers, PlacesAreMultiplesOfWhatSizesAre) {
  std::vector<Tenant> tenants = {{.bytes = 3 * 4096, .life = {0, 1}},
                                 {.bytes = 4096, .life = {2, 3}},
                                 {.bytes = 2 * 4096, .life = {2, 4}}};
  EXPECT_EQ(PackedBytes(tenants), 3 * 4096);
  for (const Tenant& tenant : tenants) {
    EXPECT_EQ(tenant.place.second % 4096, 0);
  }
}

// Of carried values each is there when a program begins, and lends its place
// in between.
TEST(PackBuffers, WhatGoesRoundLendsItsPlace) {
  std::vector<Tenant> tenants = {
      {.bytes = 128, .life = {20, 9}},  {.bytes = 128, .life = {18, 11}},
      {.bytes = 64, .life = {10, 19}},  {.bytes = 64, .life = {10, 19}},
      {.bytes = 128, .life = {12, 17}}, {.bytes = 64, .life = {13, 12}}};
  EXPECT_EQ(MostAtOnce(tenants), 128 + 128 + 64);
  EXPECT_EQ(PackedBytes(tenants), 128 + 128 + 64);
}

// As with intervals of one width: as many as overlap are enough.
TEST(PackBuffers, OfOneSizeTakeTheLeast) {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    std::vector<Tenant> tenants(1 + random() % 40);
    for (Tenant& tenant : tenants) {
      const int a = random() % kMoments;
      const int b = random() % kMoments;
      tenant = {.bytes = 100, .life = {std::min(a, b), std::max(a, b)}};
    }
    const int64_t bytes = PackedBytes(tenants);
    EXPECT_EQ(bytes, MostAtOnce(tenants));
  }
}

TEST(PackBuffers, AnyLivesAndSizes) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<Tenant> tenants(1 + random() % 60);
    int64_t sum = 0;
    for (Tenant& tenant : tenants) {
      const int a = random() % kMoments;
      const int b = random() % kMoments;
      tenant.bytes = 1 + random() % (random() % 2 == 0 ? 200 : 5000);
      tenant.life = {std::min(a, b), std::max(a, b)};
      if (a > b && random() % 8 == 0) tenant.life = {a, b};
      sum += tenant.bytes;
    }
    const int64_t bytes = PackedBytes(tenants);
    EXPECT_GE(bytes, MostAtOnce(tenants));
    EXPECT_LE(bytes, sum);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace troupe
