// Virtual functions, templates, lambdas and exceptions.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

enum { STEP = 5 };

struct Point {
    double x, y;
};

// split: __attribute__((noinline))
double cross(Point a, Point b, Point c) { return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x); }

class Shape {
public:
    virtual ~Shape() = default;
    virtual double area() const = 0;
    virtual bool contains(Point p) const = 0;
    virtual std::string name() const { return "shape"; }
};

class Circle : public Shape {
    Point centre_;
    double radius_;

public:
    Circle(Point centre, double radius) : centre_(centre), radius_(radius) {}
    double area() const override { return 3.14159 * radius_ * radius_; }
    bool contains(Point p) const override { return std::hypot(p.x - centre_.x, p.y - centre_.y) <= radius_; }
    std::string name() const override { return "circle " + std::to_string(radius_); }
};

class Box : public Shape {
    Point low_, high_;

public:
    Box(Point low, Point high) : low_(low), high_(high) {}
    double area() const override { return (high_.x - low_.x) * (high_.y - low_.y); }
    bool contains(Point p) const override { return p.x >= low_.x && p.x <= high_.x && p.y >= low_.y && p.y <= high_.y; }
};

// early: __attribute__((noinline, used)) double added_early(double x) { return std::sqrt(x) * 3 + x / 7; }

class Polygon : public Shape {
    std::vector<Point> corners_;

public:
    explicit Polygon(std::vector<Point> corners) : corners_(std::move(corners)) {
        if (corners_.size() < 3) throw std::invalid_argument("too few corners");
    }
    double area() const override {
        double sum = 0;
        for (size_t i = 0; i < corners_.size(); i++) {
            const auto &a = corners_[i], &b = corners_[(i + 1) % corners_.size()];
            sum += a.x * b.y - b.x * a.y;
        }
        return std::fabs(sum) / 2;
    }
    bool contains(Point p) const override {
        bool inside = false;
        for (size_t i = 0, j = corners_.size() - 1; i < corners_.size(); j = i++) {
            const auto &a = corners_[i], &b = corners_[j];
            if ((a.y > p.y) != (b.y > p.y) && p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x) inside = !inside;
        }
        return inside;
    }
    std::string name() const override { return "polygon of " + std::to_string(corners_.size()); }
};

class Random {
    unsigned long state_ = 42;

public:
    double next(double bound) {
        state_ = state_ * 6364136223846793005ul + 1442695040888963407ul;
        return static_cast<double>(state_ >> 33) / 2147483648.0 * bound;
    }
};

__attribute__((noinline)) std::vector<Point> hull(std::vector<Point> points) {
    std::sort(points.begin(), points.end(), [](Point a, Point b) { return a.x < b.x || (a.x == b.x && a.y < b.y); });
    std::vector<Point> result(points.size() * 2);
    size_t k = 0;
    for (const auto &p : points) {
        while (k >= 2 && cross(result[k - 2], result[k - 1], p) <= 0) k--;
        result[k++] = p;
    }
    for (size_t i = points.size() - 1, low = k + 1; i-- > 0;) {
        while (k >= low && cross(result[k - 2], result[k - 1], points[i]) <= 0) k--;
        result[k++] = points[i];
    }
    result.resize(k - 1);
    return result;
}

template <typename T, int N>
__attribute__((noinline)) T smooth(std::vector<T> values) {
    for (int round = 0; round < N; round++)
        for (size_t i = 1; i + 1 < values.size(); i++) values[i] = (values[i - 1] + values[i] * 2 + values[i + 1]) / 4;
    return std::accumulate(values.begin(), values.end(), T());
}

__attribute__((noinline)) std::vector<std::unique_ptr<Shape>> make(Random &random, int count) {
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int i = 0; i < count; i++) {
        Point p{random.next(100), random.next(100)};
        try {
            if (i % 3 == 0) shapes.push_back(std::make_unique<Circle>(p, random.next(20)));
            else if (i % 3 == 1) shapes.push_back(std::make_unique<Box>(p, Point{p.x + 9, p.y + STEP}));
            else {
                std::vector<Point> points(static_cast<size_t>(random.next(20)));
                for (auto &each : points) each = {random.next(100), random.next(100)};
                shapes.push_back(std::make_unique<Polygon>(points.size() > 2 ? hull(points) : points));
            }
        } catch (const std::invalid_argument &) {
            shapes.push_back(std::make_unique<Circle>(p, 1));
        }
    }
    return shapes;
}

__attribute__((noinline)) long hits(const std::vector<std::unique_ptr<Shape>> &shapes, Random &random, int count) {
    long found = 0;
    for (int i = 0; i < count; i++) {
        Point p{random.next(100), random.next(100)};
        found += std::count_if(shapes.begin(), shapes.end(), [&](const auto &each) { return each->contains(p); });
    }
    return found;
}

__attribute__((noinline)) size_t names(const std::vector<std::unique_ptr<Shape>> &shapes) {
    std::vector<std::string> result;
    std::transform(shapes.begin(), shapes.end(), std::back_inserter(result), [](const auto &each) { return each->name(); });
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result.size();
}

}  // namespace

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
    Random random;
    double sum = 0;
    do {
        auto shapes = make(random, 150);
        sum += static_cast<double>(hits(shapes, random, 200)) + static_cast<double>(names(shapes));
        std::vector<double> areas;
        for (const auto &each : shapes) areas.push_back(each->area());
        sum += smooth<double, STEP * 4>(areas);
        sum += smooth<float, 10>(std::vector<float>(areas.begin(), areas.end()));
        std::function<double(double)> last = [&](double x) { return x + areas.back(); };
        sum = last(sum);
    } while (static_cast<double>(std::clock()) / CLOCKS_PER_SEC < seconds);
    std::printf("%g\n", sum);
}
// late: __attribute__((noinline, used)) int added_late(int x) { return x * 31 % 977; }
