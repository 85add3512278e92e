// Containers of the standard library with types of our own.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <list>
#include <map>
#include <queue>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

enum { STEP = 4 };

struct Key {
    int group;
    std::string text;
    bool operator<(const Key &other) const { return group != other.group ? group < other.group : text < other.text; }
    bool operator==(const Key &other) const { return group == other.group && text == other.text; }
};

struct Hash {
    size_t operator()(const Key &key) const { return std::hash<std::string>()(key.text) * 31 + static_cast<size_t>(key.group); }
};

unsigned draw(unsigned bound) {
    static unsigned long state = 99;
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return static_cast<unsigned>(state >> 33) % bound;
}

// split: __attribute__((noinline))
Key some_key() {
    std::string text;
    for (unsigned i = 0; i < 3 + draw(4); i++) text += static_cast<char>('a' + draw(6));
    return {static_cast<int>(draw(STEP)), text};
}

__attribute__((noinline)) long count_ordered(const std::vector<Key> &keys) {
    std::map<Key, int> counts;
    for (const auto &key : keys) counts[key]++;
    long sum = 0;
    for (const auto &[key, count] : counts) sum += count * key.group;
    return sum;
}

__attribute__((noinline)) long count_hashed(const std::vector<Key> &keys) {
    std::unordered_map<Key, int, Hash> counts;
    for (const auto &key : keys) counts[key]++;
    long most = 0;
    for (const auto &each : counts) most = std::max<long>(most, each.second);
    return most;
}

// early: __attribute__((noinline, used)) long added_early(const std::deque<long> &d) { long s = 0; for (long x : d) s = s * 3 + x; return s; }

using Graph = std::vector<std::vector<std::pair<int, int>>>;

__attribute__((noinline)) Graph make_graph(int nodes) {
    Graph graph(static_cast<size_t>(nodes));
    for (auto &edges : graph)
        for (int i = 0; i < 4; i++) edges.emplace_back(static_cast<int>(draw(static_cast<unsigned>(nodes))), 1 + static_cast<int>(draw(20)));
    return graph;
}

__attribute__((noinline)) long shortest(const Graph &graph) {
    std::vector<long> distance(graph.size(), 1 << 30);
    std::priority_queue<std::pair<long, int>> waiting;
    distance[0] = 0;
    waiting.emplace(0, 0);
    while (!waiting.empty()) {
        auto [far, node] = waiting.top();
        waiting.pop();
        if (-far > distance[static_cast<size_t>(node)]) continue;
        for (auto [next, length] : graph[static_cast<size_t>(node)])
            if (-far + length < distance[static_cast<size_t>(next)]) {
                distance[static_cast<size_t>(next)] = -far + length;
                waiting.emplace(far - length, next);
            }
    }
    long sum = 0;
    for (long each : distance) sum += each;
    return sum;
}

__attribute__((noinline)) long breadth(const Graph &graph) {
    std::deque<int> waiting{0};
    std::set<int> seen{0};
    while (!waiting.empty()) {
        int node = waiting.front();
        waiting.pop_front();
        for (const auto &edge : graph[static_cast<size_t>(node)])
            if (seen.insert(edge.first).second) waiting.push_back(edge.first);
    }
    return static_cast<long>(seen.size());
}

__attribute__((noinline)) long josephus(int count) {
    std::list<int> ring;
    for (int i = 0; i < count; i++) ring.push_back(i);
    auto at = ring.begin();
    while (ring.size() > 1) {
        for (int i = 0; i < STEP; i++)
            if (++at == ring.end()) at = ring.begin();
        at = ring.erase(at);
        if (at == ring.end()) at = ring.begin();
    }
    return ring.front();
}

__attribute__((noinline)) size_t format(const std::vector<Key> &keys) {
    std::ostringstream out;
    for (size_t i = 0; i < keys.size(); i += 8) out << keys[i].text << ':' << keys[i].group << ' ' << 1.5 * static_cast<double>(i) << '\n';
    return out.str().size();
}

}  // namespace

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
    long sum = 0;
    do {
        std::vector<Key> keys(1200);
        for (auto &key : keys) key = some_key();
        const Graph graph = make_graph(400);
        sum += count_ordered(keys) + count_hashed(keys) + shortest(graph) + breadth(graph) + josephus(500);
        sum += static_cast<long>(format(keys));
    } while (static_cast<double>(std::clock()) / CLOCKS_PER_SEC < seconds);
    std::printf("%ld\n", sum);
}
// late: __attribute__((noinline, used)) int added_late(int x) { return x * 31 % 977; }
