// SPDX-License-Identifier: BSD-3-Clause
#include "heat/parts.hpp"

#include <algorithm>

#include "trifold/error.hpp"

namespace trifold::heat {

template <class T>
Parts<T>::Parts(Queue& queue, const Problem<T>& problem, T* u, std::int64_t at_once)
    : queue_(queue), problem_(problem), u_(u), cells_(problem.shape.x * problem.shape.y * problem.shape.z) {
    const std::int64_t meshes = problem.shape.meshes;
    divide(at_once > 0 ? std::min(at_once, meshes) : meshes);
    if (!elsewhere()) {
        enter(0);
        return;
    }
    while (!fits()) {
        divide((at_once_ + 1) / 2);
        cut_ = true;
    }
}

template <class T>
void Parts<T>::divide(std::int64_t at_once) {
    const std::int64_t meshes = problem_.shape.meshes, parts = at_once > 0 ? (meshes + at_once - 1) / at_once : 1;
    at_once_ = (meshes + parts - 1) / parts;  // of nearly one size
    done_.assign(static_cast<std::size_t>((meshes + at_once_ - 1) / at_once_), 0);
    entered_ = -1, ahead_ = false;
}

// Memory is what a device may have too little of; what is wrong with the problem remains so with one mesh.
template <class T>
bool Parts<T>::fits() {
    try {
        device_ = DeviceArray<T>(queue_, at_once_ * cells_);
        enter(0);
        heat_->advance(0);  // takes its scratch, and compiles where kernels are
        return true;
    } catch (const Error& error) {
        if (error.code() != ErrorCode::bad_input || at_once_ == 1) throw;
        heat_.reset(), device_ = {};
        return false;
    }
}

template <class T>
std::int64_t Parts<T>::entered_meshes() const noexcept {
    return std::min(at_once_, problem_.shape.meshes - entered_ * at_once_);
}

template <class T>
void Parts<T>::enter(std::int64_t k) {
    if (k == entered_) return;
    fetch();
    entered_ = k, entered_at_ = done_[static_cast<std::size_t>(k)];
    if (elsewhere()) copy(queue_, device_.data(), in_host(), static_cast<std::size_t>(entered_meshes() * cells_) * sizeof(T));
    Problem<T> part = problem_;
    part.shape.meshes = entered_meshes();
    heat_.reset();
    heat_.emplace(queue_, part, where_it_computes());
}

template <class T>
SweepOutcome Parts<T>::advance(std::int64_t steps) {
    SweepOutcome outcome = heat_->advance(steps);
    ahead_ = true;
    if (outcome.ok()) done_[static_cast<std::size_t>(entered_)] += steps;
    if (outcome.step >= 0) outcome.step += entered_at_;
    if (outcome.mesh >= 0) outcome.mesh += entered_ * at_once_;
    return outcome;
}

template <class T>
void Parts<T>::fetch() {
    if (ahead_ && elsewhere()) copy(queue_, in_host(), device_.data(), static_cast<std::size_t>(entered_meshes() * cells_) * sizeof(T));
    ahead_ = false;
}

template <class T>
void Parts<T>::read(std::int64_t first, std::span<T> to) const {
    copy(queue_, to.data(), where_it_computes() + first, to.size_bytes());
}

template class Parts<float>;
template class Parts<double>;

}  // namespace trifold::heat
