//! The data folder: crashes, full disks, damage, and folders of earlier versions.

mod crash;
mod damage;
mod disk;
mod earlier_data;
mod lock;
