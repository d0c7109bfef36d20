class CreateContactRequests < ActiveRecord::Migration[6.1]
  def change
    create_table :contact_requests do |table|
      table.string :name, null: false
      table.string :email, null: false
      table.text :message
      table.timestamps
    end
  end
end
